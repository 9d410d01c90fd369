// The scheduler's time: Unix time that no one sets. Budgets and pauses are counted in it and records hold it, so that a wall
// clock that is set to another hour ends no stage early and holds none back.

/** It goes after the wall clock by this part faster or slower. */
const RATE = 0.1;
/**
 * A wall clock that is further away holds at once: it was never right before, or the machine slept, and the steady clock
 * with it. It bears a clock that is set by an hour, and what that one has drifted.
 */
const APART_MS_MAX = 90 * 60_000;

export class EvenClock {
  readonly #wallMs: () => number;
  readonly #steadyMs: () => number;
  #unixMs: number;
  #seenMs: number;

  /** `wallMs`: Unix time that may jump; `steadyMs`: since any moment, and never set; it may miss sleep. Both in milliseconds. */
  constructor(wallMs: () => number, steadyMs: () => number) {
    this.#wallMs = wallMs;
    this.#steadyMs = steadyMs;
    this.#unixMs = wallMs();
    this.#seenMs = steadyMs();
  }

  /** Whole milliseconds. */
  now(): number {
    const steadyMs = this.#steadyMs();
    const passedMs = steadyMs - this.#seenMs;
    this.#seenMs = steadyMs;
    this.#unixMs += passedMs;
    const apartMs = this.#wallMs() - this.#unixMs;
    const most = Math.abs(apartMs) > APART_MS_MAX ? Number.POSITIVE_INFINITY : passedMs * RATE;
    this.#unixMs += Math.max(-most, Math.min(most, apartMs));
    return Math.floor(this.#unixMs);
  }

  /** What is stored already is not of the future: its scheduler's clock may have been ahead. */
  notBefore(unixMs: number): void {
    if (unixMs - this.now() <= APART_MS_MAX) this.#unixMs = Math.max(this.#unixMs, unixMs);
  }
}
