// A time limit whose clock stands still while somebody holds it.

export class TimeLimit implements Disposable {
  readonly #onOver: () => void;
  #leftMs: number;
  /** When it was started last; the clock goes while there is a timer. */
  #startedAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #holds = 0;

  /** `onOver` is called once, unless it is disposed of before. */
  constructor(ms: number, onOver: () => void) {
    this.#leftMs = ms;
    this.#onOver = onOver;
    this.#start();
  }

  /** No time passes until what it returns is disposed of. Others may hold it meanwhile. */
  hold(): Disposable {
    if (this.#holds++ === 0) this.#stop();
    return {
      [Symbol.dispose]: () => {
        if (--this.#holds === 0) this.#start();
      },
    };
  }

  /** It is over for nobody any more. */
  [Symbol.dispose](): void {
    this.#holds = Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
  }

  #start(): void {
    this.#startedAt = performance.now();
    this.#timer = setTimeout(this.#onOver, this.#leftMs);
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#leftMs -= performance.now() - this.#startedAt;
  }
}
