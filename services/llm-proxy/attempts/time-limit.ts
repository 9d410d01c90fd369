// The time limit of a call: for all of it, and for silence in what has begun to come. Its clock stands still until it is
// started, and while somebody holds it.

export interface Spans {
  readonly totalMs: number;
  /** Between this and twice as much of it ends the call: looking now and then costs less than a timer for each piece. */
  readonly silenceMs: number;
}

export class TimeLimit implements Disposable {
  readonly #silenceMs: number;
  readonly #onOver: (isSilent: boolean) => void;
  #leftMs: number;
  #started = false;
  /** Since the last look; unset: nothing has come yet, and what comes whole is silent until then. */
  #heard: boolean | undefined;
  /** When it was let go last; the clock goes while there is a timer. */
  #since = 0;
  #timer: NodeJS.Timeout | undefined;
  #holds = 0;

  /** `onOver` is called once, unless it is disposed of before. */
  constructor({ totalMs, silenceMs }: Spans, onOver: (isSilent: boolean) => void) {
    this.#leftMs = totalMs;
    this.#silenceMs = silenceMs;
    this.#onOver = onOver;
  }

  /** Somebody is asked, maybe again: nothing has come from there. */
  start(): void {
    this.#heard = undefined;
    if (this.#started) return;
    this.#started = true;
    if (this.#holds === 0) this.#go();
  }

  /** Something has come. */
  heard(): void {
    this.#heard = true;
  }

  /** No time passes until what it returns is disposed of. Others may hold it meanwhile. */
  hold(): Disposable {
    if (this.#holds++ === 0) this.#stop();
    return {
      [Symbol.dispose]: () => {
        if (--this.#holds === 0 && this.#started) this.#go();
      },
    };
  }

  /** It is over for nobody any more. */
  [Symbol.dispose](): void {
    this.#holds = Number.POSITIVE_INFINITY;
    clearTimeout(this.#timer);
  }

  #go(): void {
    this.#since = performance.now();
    this.#timer = setTimeout(() => this.#look(), Math.ceil(Math.min(this.#leftMs, this.#silenceMs)));
  }

  #stop(): void {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#leftMs -= performance.now() - this.#since;
  }

  #look(): void {
    this.#stop();
    // Timers come up to a millisecond early, and take whole ones only. The last look may come sooner after the one before
    // than `silenceMs`: what was not heard since says nothing.
    const isOver = this.#leftMs < 1;
    if (isOver || this.#heard === false) this.#onOver(!isOver);
    else {
      if (this.#heard) this.#heard = false;
      this.#go();
    }
  }
}
