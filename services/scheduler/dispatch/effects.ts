// Side effects in the background: some at once, again after a pause while they are still wanted, none left at the end.
import { Semaphore, sleep } from '../../common/clock.ts';
import { asPolarError, type PolarError } from '../../common/errors.ts';
import { SIDE_EFFECT_PAUSE_MS, SIDE_EFFECTS_AT_ONCE_MAX } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import * as events from '../events.ts';

export interface Effect {
  /** Safe to repeat. */
  readonly run: () => Promise<void>;
  /** False once nobody needs it any more. */
  readonly wanted: () => boolean;
  /** Takes an error that no repetition mends; true when it did. */
  readonly giveUp?: (error: PolarError) => boolean;
}

export class Effects {
  readonly #slots = new Semaphore(SIDE_EFFECTS_AT_ONCE_MAX);
  readonly #running = new Set<Promise<void>>();
  readonly #log: Logger;
  readonly #signal: AbortSignal;

  constructor(log: Logger, signal: AbortSignal) {
    this.#log = log;
    this.#signal = signal;
  }

  start(effect: Effect): void {
    const running = this.#untilDone(effect).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves when none is running. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }

  /** A pause takes no slot: those that cannot be done now keep nobody from what can. */
  async #untilDone(effect: Effect): Promise<void> {
    while (!(await this.#slots.run(() => this.#isDone(effect)))) {
      await sleep(SIDE_EFFECT_PAUSE_MS, this.#signal);
    }
  }

  /** Tries once; false: to be tried again. */
  async #isDone({ run, wanted, giveUp }: Effect): Promise<boolean> {
    if (this.#signal.aborted || !wanted()) return true;
    try {
      await run();
      return true;
    } catch (thrown) {
      if (this.#signal.aborted) return true;
      const error = asPolarError(thrown);
      if (giveUp?.(error) === true) return true;
      events.sideEffectFailed(this.#log, error);
      return false;
    }
  }
}
