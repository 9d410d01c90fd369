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
  /** Unknown while the log is read: until then none is forgotten. */
  #named: ReadonlySet<string> | undefined;

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
    this.#forget();
  }

  /** These are never forgotten; of the others, from now on, those that ran longest ago. */
  keep(named: Iterable<string>): void {
    this.#named = new Set(named);
    this.#forget();
  }

  #forget(): void {
    const named = this.#named;
    if (named === undefined || this.#queues.size <= QUEUES_REMEMBERED_MAX) return;
    const others = [...this.#queues.keys()].filter((queue) => !named.has(queue));
    for (const queue of others.slice(0, -QUEUES_REMEMBERED_MAX)) this.#queues.delete(queue);
  }
}
