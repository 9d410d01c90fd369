// Waiting, always with a signal.
import { setTimeout as delay } from 'node:timers/promises';

/** Resolves after `ms`, or at once when the signal aborts; never rejects. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await delay(ms, undefined, signal === undefined ? {} : { signal }).catch(() => {});
}

/**
 * A signal that fires when one of the given does or the time is over. What listens to it is held until then, by the
 * timer: where that is long, or often, use a Deadline.
 */
export function withTimeout(ms: number, ...signals: (AbortSignal | undefined)[]): AbortSignal {
  const given = signals.filter((signal) => signal !== undefined);
  return AbortSignal.any([AbortSignal.timeout(ms), ...given]);
}

/** The same, for as long as somebody waits: disposed of, it holds nothing. */
export class Deadline implements Disposable {
  readonly #controller = new AbortController();
  readonly #given: readonly AbortSignal[];
  readonly #timer: NodeJS.Timeout;
  readonly #follow = (): void => {
    this.#controller.abort(this.#given.find(({ aborted }) => aborted)?.reason);
  };
  #isOver = false;

  constructor(ms: number, ...signals: readonly AbortSignal[]) {
    this.#given = signals;
    this.#timer = setTimeout(() => {
      this.#isOver = true;
      this.#controller.abort(new DOMException(`not done within ${ms} ms`, 'TimeoutError'));
    }, ms);
    for (const signal of signals) signal.addEventListener('abort', this.#follow, { once: true });
    if (signals.some(({ aborted }) => aborted)) this.#follow();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The time begins anew, where it is not over. */
  renew(): void {
    if (!this.#isOver) this.#timer.refresh();
  }

  /** It fired as the time was over. */
  get isOver(): boolean {
    return this.#isOver;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    for (const signal of this.#given) signal.removeEventListener('abort', this.#follow);
  }
}

/** Waits for a promise to settle, but no longer than `ms`; leaves no timer behind and never rejects. */
export async function settledWithin(promise: Promise<unknown>, ms: number): Promise<void> {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([promise.catch(() => {}), over]);
  clearTimeout(timer);
}

/** Rejects with the signal's reason when it aborts before the promise settles. */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Takes at most `limit` at a time; more wait in order. */
export class Semaphore {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(limit: number) {
    this.#free = limit;
  }

  async run<T>(task: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.acquire(signal);
    try {
      return await task();
    } finally {
      this.release();
    }
  }

  /** Take one if it is free now. */
  tryAcquire(): boolean {
    if (this.#free === 0) return false;
    this.#free--;
    return true;
  }

  /** Who leaves before its turn waits no more: rejects with the signal's reason. */
  async acquire(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.tryAcquire()) return;
    const { promise: turn, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    const leave = (): void => {
      const place = this.#waiting.indexOf(resolve);
      if (place < 0) return;
      this.#waiting.splice(place, 1);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', leave, { once: true });
    try {
      await turn;
    } finally {
      signal?.removeEventListener('abort', leave);
    }
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}
