// The body of a streamed answer on its way out. Node writes each piece of a chunked body as four: for small events that
// costs more than all that is done to make them. Here a piece is one write.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import process from 'node:process';

export class Outlet {
  readonly #response: ServerResponse;
  /** Unset: pieces go through the response, as over HTTP/2, to clients of HTTP/1.0, or behind another answer. */
  #socket: Socket | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** The head; it goes out with what is written at once. */
  begin(headers: Readonly<Record<string, string>>): void {
    const response = this.#response;
    response.writeHead(200, headers);
    const { socket } = response;
    if (!response.chunkedEncoding || socket === null) return;
    socket.cork();
    process.nextTick(() => socket.uncork());
    response.flushHeaders();
    this.#socket = socket;
  }

  /** Whether the other side reads; if not, `drain` of `flow` says when it does again. */
  write(text: string): boolean {
    if (this.#socket === undefined) return this.#response.write(text);
    return this.#socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  }

  get flow(): ServerResponse | Socket {
    return this.#socket ?? this.#response;
  }
}
