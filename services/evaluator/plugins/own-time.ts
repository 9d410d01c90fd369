// The time that a plug-in has taken itself: what making its sandboxes takes is the machine's.
import { sleep } from '../../common/clock.ts';

/** Between two looks while somebody else's time passes. */
const LOOK_MS = 50;

export class OwnTime {
  readonly #startedAt = performance.now();
  #othersMs = 0;
  #othersSince: number | undefined;

  /** Not counted while this goes on; one at a time. */
  async without<T>(work: () => Promise<T>): Promise<T> {
    this.#othersSince = performance.now();
    try {
      return await work();
    } finally {
      this.#othersMs += performance.now() - this.#othersSince;
      this.#othersSince = undefined;
    }
  }

  /** Resolves when so much of it is over. Throws the signal's reason. */
  async over(ms: number, signal: AbortSignal): Promise<void> {
    for (let leftMs = ms; leftMs > 0; leftMs = ms - this.#takenMs()) {
      signal.throwIfAborted();
      await sleep(Math.max(LOOK_MS, leftMs), signal);
    }
    signal.throwIfAborted();
  }

  #takenMs(): number {
    return (this.#othersSince ?? performance.now()) - this.#startedAt - this.#othersMs;
  }
}
