// Work that may be delivered again while it is done, or after.
import { ENDED_WORK_KEPT_MAX } from './limits.ts';

/** Knows what this process holds and, up to ENDED_WORK_KEPT_MAX, what it has ended. */
export class Once {
  readonly #held = new Map<string, Promise<void>>();
  readonly #ended = new Set<string>();

  /** Do `task` once for a key: a second call waits for the first one's end, or returns at once behind it. */
  async run(key: string, task: () => Promise<void>): Promise<void> {
    if (this.#ended.has(key)) return;
    let held = this.#held.get(key);
    if (held === undefined) {
      held = this.#hold(key, task);
      this.#held.set(key, held);
    }
    await held;
  }

  async #hold(key: string, task: () => Promise<void>): Promise<void> {
    try {
      await task();
      this.#ended.add(key);
      const [oldest] = this.#ended;
      if (this.#ended.size > ENDED_WORK_KEPT_MAX && oldest !== undefined) this.#ended.delete(oldest);
    } finally {
      this.#held.delete(key);
    }
  }
}
