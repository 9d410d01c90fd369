// What queues have used: run time, and runs that have ended. It follows from the commits, so that it outlives a take-over.
import { QUEUES_REMEMBERED_MAX } from '../../common/limits.ts';

export interface Used {
  readonly runMs: number;
  readonly runs: number;
}

const NOTHING: Used = { runMs: 0, runs: 0 };

export class Usage {
  /** The one that ran longest ago is in front. */
  readonly #queues = new Map<string, Used>();

  get all(): Iterable<[string, Used]> {
    return this.#queues;
  }

  of(queue: string): Used {
    return this.#queues.get(queue) ?? NOTHING;
  }

  /** A run ended. */
  ran(queue: string, runMs: number): void {
    const used = this.of(queue);
    this.set(queue, { runMs: used.runMs + runMs, runs: used.runs + 1 });
  }

  /** As a snapshot says it. */
  set(queue: string, used: Used): void {
    this.#queues.delete(queue);
    this.#queues.set(queue, used);
    const [oldest] = this.#queues.keys();
    if (this.#queues.size > QUEUES_REMEMBERED_MAX && oldest !== undefined) this.#queues.delete(oldest);
  }
}
