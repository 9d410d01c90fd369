// The time limit of a command, which can be counted anew while it runs.

export class Limit {
  #ms: number;
  #timer: NodeJS.Timeout | undefined;
  #over: (() => void) | undefined;

  constructor(ms: number) {
    this.#ms = ms;
  }

  /** Count from now on; `over` is called once, unless it is stopped before. */
  start(over: () => void): void {
    this.#over = over;
    this.renew(this.#ms);
  }

  /** Count anew from now on, or from the start where that is still to come. */
  renew(ms: number): void {
    this.#ms = ms;
    if (this.#over === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#over, ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#over = undefined;
  }
}
