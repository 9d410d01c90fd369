// The node's places for evaluations. Sessions that end have as many as the node counts for them, whatever else is graded: the
// scheduler's clock runs for each. What is graded again has what these leave.
import { Semaphore } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';

/** Sessions that wait to be graded again; above: EVALUATIONS_LIMIT. */
const EVALUATIONS_WAITING_MAX = 256;

export class Places {
  readonly #max: number;
  readonly #waitingMax: number;
  readonly #live: Semaphore;
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(max: number, waitingMax = EVALUATIONS_WAITING_MAX) {
    this.#max = max;
    this.#waitingMax = waitingMax;
    this.#live = new Semaphore(max);
  }

  /** For a session that ends: it waits for others of these at most. */
  async live<T>(task: () => Promise<T>): Promise<T> {
    return await this.#live.run(async () => {
      this.#taken++;
      return await this.#left(task);
    });
  }

  /** For one that is graded again. Who leaves before its turn waits no more. Throws EVALUATIONS_LIMIT. */
  async again<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#taken >= this.#max) await this.#turn(signal);
    else this.#taken++;
    return await this.#left(task);
  }

  async #left<T>(task: () => Promise<T>): Promise<T> {
    try {
      return await task();
    } finally {
      this.#taken--;
      this.#next();
    }
  }

  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined || this.#taken >= this.#max) return;
    this.#waiting.delete(first);
    this.#taken++;
    first();
  }

  /** Resolves with the place taken. */
  async #turn(signal: AbortSignal): Promise<void> {
    if (this.#waiting.size >= this.#waitingMax) {
      throw new PolarError(
        'EVALUATIONS_LIMIT',
        `${this.#waiting.size} sessions wait here to be graded again`,
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    const leave = (): void => {
      if (this.#waiting.delete(resolve)) reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }
}
