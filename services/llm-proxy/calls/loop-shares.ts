// Shares of the event loop. The beginning of a call and the end of a stream are work of half a millisecond, and hundreds of
// them may come at once: while streams are open, the process looks between any few of them at what has come in, so that
// these flow on. Where none is open nobody waits for a share, as each look costs.

/** Shares between two looks. */
export const EACH_LOOK = 2;

export class LoopShares {
  /** Oldest first. Each waits for so many looks as stand before it, no longer: it needs no signal. */
  readonly #waiting: (() => void)[] = [];
  #left = EACH_LOOK;
  #looks = false;
  #streams = 0;

  /** Counts a stream as open until it is disposed of. */
  stream(): Disposable {
    this.#streams++;
    return { [Symbol.dispose]: () => this.#streams-- };
  }

  /** Undefined: now, without a wait. */
  take(): Promise<void> | undefined {
    if (this.#streams === 0 && this.#waiting.length === 0) return undefined;
    if (!this.#looks) this.#lookLater();
    if (this.#left === 0) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#left--;
    return undefined;
  }

  /** What is done by `setImmediate` comes behind a look at all sockets. */
  #lookLater(): void {
    this.#looks = true;
    setImmediate(() => {
      this.#looks = false;
      const next = this.#waiting.splice(0, EACH_LOOK);
      this.#left = EACH_LOOK - next.length;
      if (next.length > 0) this.#lookLater();
      for (const go of next) go();
    });
  }
}
