// Memory of another Node.js process that was started with --inspect, after a garbage collection.

export class Inspector implements Disposable {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #calls = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result?: unknown };
      if (id !== undefined) this.#waiting.get(id)?.(result);
    });
  }

  static async open(port: number): Promise<Inspector> {
    const answer = await fetch(`http://127.0.0.1:${port}/json/list`);
    const [target] = (await answer.json()) as { webSocketDebuggerUrl: string }[];
    const socket = new WebSocket(target?.webSocketDebuggerUrl ?? '');
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve, { once: true });
      socket.addEventListener('error', reject, { once: true });
    });
    return new Inspector(socket);
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }

  /** Bytes that are in use: objects and buffers. */
  async usedBytes(): Promise<number> {
    // Buffers are freed by the finalizers of the first collection.
    for (let i = 0; i < 2; i++) await this.#call('HeapProfiler.collectGarbage', {});
    const expression = 'process.memoryUsage().heapUsed + process.memoryUsage().external';
    const { result } = (await this.#call('Runtime.evaluate', { expression })) as {
      result: { value: number };
    };
    return result.value;
  }

  async #call(method: string, params: object): Promise<unknown> {
    const id = ++this.#calls;
    const answered = Promise.withResolvers<unknown>();
    this.#waiting.set(id, answered.resolve);
    this.#socket.send(JSON.stringify({ id, method, params }));
    const result = await answered.promise;
    this.#waiting.delete(id);
    return result;
  }
}
