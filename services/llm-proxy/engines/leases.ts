// Leases on a model pool: a session takes one with its first call and gives it back when it ends.
import { PolarError } from '../../common/errors.ts';
import { ENGINE_BUSY_RETRY_MS } from '../../common/limits.ts';

export class Leases {
  readonly #held = new Set<string>();
  readonly #alias: string;
  readonly #max: number | null;

  /** null: any number. */
  constructor(alias: string, max: number | null) {
    this.#alias = alias;
    this.#max = max;
  }

  /** Safe to repeat. Throws POOL_SESSIONS_LIMIT. */
  take(session: string): void {
    if (this.#max !== null && !this.#held.has(session) && this.#held.size >= this.#max) {
      const message = `${this.#alias} is in use by ${this.#max} sessions, as many as may; come again`;
      throw new PolarError('POOL_SESSIONS_LIMIT', message, { retryAfterMs: ENGINE_BUSY_RETRY_MS });
    }
    this.#held.add(session);
  }

  giveBack(session: string): void {
    this.#held.delete(session);
  }
}
