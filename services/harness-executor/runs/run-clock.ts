// The time that a harness has: what its run budget says, without the time in which its calls are held.
import type { ExecClock } from '../../common/exec.ts';
import type { HeldTimes } from '../../common/held-times.ts';
import { EXEC_TIMEOUT_MAX_MS, PAUSE_END_GRACE_MS } from '../../common/limits.ts';

/** What a run's clock needs of the policy watch. */
export interface PolicySource {
  readonly held: Pick<HeldTimes, 'isHeld' | 'inLast' | 'leftMs'>;
  onChange(listener: () => void): Disposable;
}

export class RunClock implements ExecClock {
  readonly #source: PolicySource;
  readonly #budgetMs: number;
  readonly #startMs = performance.now();

  constructor(source: PolicySource, budgetMs: number) {
    this.#source = source;
    this.#budgetMs = budgetMs;
  }

  follow(renew: (leftMs: number) => void): Disposable {
    // In whole milliseconds: a duration takes no others.
    const ranMs = (): number => Math.round(performance.now() - this.#startMs);
    const tell = (): void => renew(this.#leftMs(ranMs()));
    if (this.#source.held.isHeld) tell();
    return this.#source.onChange(tell);
  }

  /** While calls are held, what is left lasts until the pause would end by itself and some more. */
  #leftMs(ranMs: number): number {
    const { held } = this.#source;
    const left = Math.max(1, this.#budgetMs - ranMs + Math.min(ranMs, Math.round(held.inLast(ranMs))));
    const pause = held.isHeld ? Math.round(held.leftMs) + PAUSE_END_GRACE_MS : 0;
    return Math.min(left + pause, EXEC_TIMEOUT_MAX_MS);
  }
}
