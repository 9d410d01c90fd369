// The time that a harness has: what its run budget says, without the time in which its calls are held.
import type { Policy } from '../../../gen/ts/polar/event/v1/policy_pb.js';
import type { ExecClock } from '../../common/exec.ts';
import { EXEC_TIMEOUT_MAX_MS, PAUSE_END_GRACE_MS } from '../../common/limits.ts';
import { heldMs } from '../../common/policy.ts';

/** What a run's clock needs of the policy watch. */
export interface PolicySource {
  readonly policy: Policy;
  onChange(listener: () => void): Disposable;
}

export class RunClock implements ExecClock {
  readonly #source: PolicySource;
  readonly #budgetMs: number;
  readonly #startMs = performance.now();
  readonly #startUnixMs = Date.now();

  constructor(source: PolicySource, budgetMs: number) {
    this.#source = source;
    this.#budgetMs = budgetMs;
  }

  follow(renew: (leftMs: number) => void): Disposable {
    // In whole milliseconds: a duration takes no others.
    const ranMs = (): number => Math.round(performance.now() - this.#startMs);
    const tell = (): void => renew(this.#leftMs(ranMs(), Date.now()));
    if (this.#source.policy.pauseExpireMs > 0n) tell();
    return this.#source.onChange(tell);
  }

  /**
   * While calls are held, what is left lasts until the pause would end by itself and some more. Pauses stand in the policy by
   * wall clocks, and only they: one that is set, or a machine that sleeps, takes nothing of the run's time.
   */
  #leftMs(ranMs: number, nowMs: number): number {
    const { policy } = this.#source;
    const held = heldMs(policy, Math.min(this.#startUnixMs, nowMs - ranMs), nowMs);
    const left = Math.max(1, this.#budgetMs - ranMs + Math.min(ranMs, held));
    const pause = policy.pauseExpireMs === 0n ? 0 : Number(policy.pauseExpireMs) - nowMs + PAUSE_END_GRACE_MS;
    return Math.min(left + Math.max(0, pause), EXEC_TIMEOUT_MAX_MS);
  }
}
