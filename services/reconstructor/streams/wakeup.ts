// A wait that ends early when something has changed.

export class Wakeup {
  readonly #waiting = new Set<() => void>();
  #count = 0;

  /** Changes so far. Read it before looking at what may change. */
  get count(): number {
    return this.#count;
  }

  wake(): void {
    this.#count++;
    for (const resolve of this.#waiting) resolve();
  }

  /** Resolves at the first change after `count`, after `ms`, or when the signal aborts; never rejects. */
  async wait(count: number, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#count !== count || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    const onAbort = (): void => resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    this.#waiting.add(resolve);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      this.#waiting.delete(resolve);
    }
  }
}
