// Side effects in the background: some at once, again after a growing pause while they are still wanted, none left at the
// end.
import { Semaphore, sleep } from '../../common/clock.ts';
import { asPolarError, type PolarError } from '../../common/errors.ts';
import { SIDE_EFFECT_PAUSE_MS, SIDE_EFFECTS_AT_ONCE_MAX } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import * as events from '../events.ts';

/** Longest pause between two tries of an effect; the first is SIDE_EFFECT_PAUSE_MS, the next ones double. */
const PAUSE_MAX_MS = 60_000;
/** Of an effect that fails on and on, the first failure is logged, and then each of so many: one in ten minutes. */
const LOGGED_EACH = 10;

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
  readonly #pauseMs: number;

  /** `pauseMs`: after an effect's first failure. */
  constructor(log: Logger, signal: AbortSignal, pauseMs = SIDE_EFFECT_PAUSE_MS) {
    this.#log = log;
    this.#signal = signal;
    this.#pauseMs = pauseMs;
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
    let pauseMs = this.#pauseMs;
    for (let tries = 1; !(await this.#slots.run(() => this.#isDone(effect, tries))); tries++) {
      await sleep(pauseMs, this.#signal);
      pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS);
    }
  }

  /** Tries once, for the `tries`th time; false: to be tried again. */
  async #isDone({ run, wanted, giveUp }: Effect, tries: number): Promise<boolean> {
    if (this.#signal.aborted || !wanted()) return true;
    try {
      await run();
      return true;
    } catch (thrown) {
      if (this.#signal.aborted) return true;
      const error = asPolarError(thrown);
      if (giveUp?.(error) === true) return true;
      if (tries % LOGGED_EACH === 1) events.sideEffectFailed(this.#log, error, tries);
      return false;
    }
  }
}
