// Output on its way to the caller. The backends' own cap, EXEC_OUTPUT_BYTES_MAX a stream, bounds what waits here.

export interface OutputQueue<T> {
  push(item: T): void;
  close(): void;
  readonly items: AsyncIterable<T>;
}

/** One reader. What was pushed before `close` is read; a reader that leaves early stops nothing. */
export function outputQueue<T>(): OutputQueue<T> {
  let waiting: T[] = [];
  let closed = false;
  let wake = Promise.withResolvers<void>();
  const signal = (): void => {
    wake.resolve();
    wake = Promise.withResolvers<void>();
  };
  async function* items(): AsyncGenerator<T> {
    for (;;) {
      const { promise } = wake;
      const ready = waiting;
      waiting = [];
      yield* ready;
      if (waiting.length > 0) continue;
      if (closed) return;
      await promise;
    }
  }
  return {
    push(item) {
      waiting.push(item);
      signal();
    },
    close() {
      closed = true;
      signal();
    },
    items: items(),
  };
}
