// Smooths what would come all at once: so many a second, after a burst.

export interface Rate {
  readonly perSecond: number;
  /** So many at once; at least 1. */
  readonly burst: number;
}

export class TokenBucket {
  readonly #everyMs: number;
  readonly #aheadMs: number;
  /** Moment of the token that was taken last. */
  #takenMs = Number.NEGATIVE_INFINITY;

  constructor({ perSecond, burst }: Rate) {
    this.#everyMs = 1_000 / perSecond;
    this.#aheadMs = (burst - 1) * this.#everyMs;
  }

  /** How long to wait until a token is there that nobody has taken. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#takenMs + this.#everyMs - nowMs);
  }

  /** Take the next token; how long to wait until it is there. Times are of a clock that never goes back. */
  take(nowMs: number): number {
    this.#takenMs = Math.max(this.#takenMs + this.#everyMs, nowMs - this.#aheadMs);
    return Math.max(0, this.#takenMs - nowMs);
  }

  /** One that was taken is not used: the next one to ask has it. */
  giveBack(): void {
    this.#takenMs -= this.#everyMs;
  }
}
