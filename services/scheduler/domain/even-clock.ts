// The scheduler's time: Unix time that no one sets. Records hold it, and budgets and pauses are counted by what passed of it,
// so that neither a wall clock that is set nor a machine that slept ends a stage early or holds one back.

/** It goes after the wall clock by this part faster or slower. */
const RATE = 0.1;
/**
 * A wall clock that is further away holds at once: it was never right before, or the machine slept, and the steady clock
 * with it. It bears a clock that is set by an hour, and what that one has drifted.
 */
const APART_MS_MAX = 90 * 60_000;
/** What it was put right by is kept in steps of so much; below the grace of a stage. */
const STEP_MS = 5_000;
/** Steps that are kept: twice what the longest way by RATE takes; what was put right before them is forgotten. */
const STEPS_MAX = 2_160;

/** The clock was put right. */
interface Step {
  /** What it said before and after. */
  readonly fromMs: number;
  readonly toMs: number;
  /** All that it had been put right by before and after, since it began. */
  readonly sumBefore: number;
  readonly sumAfter: number;
}

export class EvenClock {
  readonly #wallMs: () => number;
  readonly #steadyMs: () => number;
  #unixMs: number;
  #seenMs: number;
  /** Oldest first. */
  readonly #steps: Step[] = [];
  #putRightMs = 0;

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
    this.#putRight(Math.max(-most, Math.min(most, apartMs)));
    return Math.floor(this.#unixMs);
  }

  /** What is stored was timed by a clock that says so now: this one goes on from there, and comes to its own wall clock. */
  goOn(unixMs: number): void {
    this.#seenMs = this.#steadyMs();
    this.#unixMs = unixMs;
    this.#steps.length = 0;
    this.#putRightMs = 0;
  }

  /** What is stored already is not of the future: its scheduler's clock may have been ahead. */
  notBefore(unixMs: number): void {
    if (unixMs - this.now() <= APART_MS_MAX) this.#unixMs = Math.max(this.#unixMs, unixMs);
  }

  /**
   * Milliseconds that passed by the steady clock between two moments of this one: what it was put right by between them did
   * not pass, and while the machine slept nothing did. Of before it began, it knows what it says alone.
   */
  passedMs(fromMs: number, toMs: number): number {
    return toMs - fromMs - (this.#putRightBy(toMs) - this.#putRightBy(fromMs));
  }

  #putRight(byMs: number): void {
    const before = this.#unixMs;
    this.#unixMs += byMs;
    this.#putRightMs += byMs;
    const sumBefore = this.#steps.at(-1)?.sumAfter ?? 0;
    if (Math.abs(this.#putRightMs - sumBefore) < STEP_MS) return;
    this.#steps.push({ fromMs: before, toMs: this.#unixMs, sumBefore, sumAfter: this.#putRightMs });
    if (this.#steps.length > STEPS_MAX) this.#steps.shift();
  }

  /** All that it had been put right by when it said so. What it has not said yet it said before it was put back. */
  #putRightBy(unixMs: number): number {
    const isAhead = unixMs > this.#unixMs;
    for (let i = this.#steps.length - 1; i >= 0; i--) {
      const { fromMs, toMs, sumBefore, sumAfter } = this.#steps[i] as Step;
      if (isAhead && fromMs >= unixMs) return sumBefore;
      if (!isAhead && toMs <= unixMs) return sumAfter;
    }
    return (isAhead ? this.#steps.at(-1)?.sumAfter : this.#steps[0]?.sumBefore) ?? 0;
  }
}
