// An HTTP server that answers just what a test says: engines that break their contract, routers, schedulers, APIs with keys.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it has sent
  readonly body: any;
}

export interface RawAnswer {
  readonly status?: number;
  readonly type?: string;
  /** Its content-encoding, in word alone. */
  readonly coding?: string;
  /** Text goes out as it is, anything else as JSON. */
  readonly body: unknown;
  /** Cut the connection behind the body, which is then not whole. */
  readonly cut?: boolean;
}

export class RawEngine implements AsyncDisposable {
  readonly requests: RawRequest[] = [];
  answer: (request: RawRequest) => RawAnswer | Promise<RawAnswer>;
  readonly #server: Server;

  private constructor(answer: RawEngine['answer']) {
    this.answer = answer;
    this.#server = createServer(async (message, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of message) chunks.push(chunk as Buffer);
      const text = Buffer.concat(chunks).toString();
      const request = {
        method: message.method ?? '',
        path: message.url ?? '',
        headers: message.headers,
        body: text === '' ? undefined : JSON.parse(text),
      };
      this.requests.push(request);
      try {
        send(response, await this.answer(request));
      } catch (error) {
        // A fault of the test: to be seen, and not waited for.
        send(response, { status: 500, body: { error: { message: String(error) } } });
      }
    });
  }

  static async start(answer: RawEngine['answer'], port = 0): Promise<RawEngine> {
    const engine = new RawEngine(answer);
    engine.#server.listen(port, '127.0.0.1');
    await once(engine.#server, 'listening');
    return engine;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** Requests to the path, in the order in which they came. */
  at(path: string): RawRequest[] {
    return this.requests.filter((request) => request.path === path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

function send(response: ServerResponse, { status = 200, type, coding, body, cut = false }: RawAnswer): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, {
    'content-type': type ?? 'application/json',
    ...(coding !== undefined && { 'content-encoding': coding }),
    ...(cut && { 'content-length': Buffer.byteLength(text) + 1 }),
  });
  if (!cut) response.end(text);
  else response.write(text, () => setImmediate(() => response.destroy()));
}

/** A stream's text. */
export const sse = (...events: unknown[]): string =>
  events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('');
