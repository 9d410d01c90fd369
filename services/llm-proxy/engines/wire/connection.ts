// One connection to an engine, and one exchange at a time on it. Node's own client makes streams, an agent's events and
// a parsed address for each request, a quarter of what a small call cost the proxy; this does what an engine needs.
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ENGINE_CONNECT_MS, ENGINE_READ_AHEAD_BYTES_MAX } from '../../../common/limits.ts';
import { type AnswerHead, AnswerReader } from '../../domain/http-answer.ts';

/** Where an engine listens. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

/** The answer to a request, from its head on. */
export class Answer implements AsyncIterable<Buffer> {
  readonly status: number;
  readonly contentType: string;
  readonly #connection: Connection;
  readonly #pieces: Buffer[] = [];
  #sizeBytes = 0;
  /** Above it the engine waits until somebody reads. */
  #aheadBytesMax = ENGINE_READ_AHEAD_BYTES_MAX;
  #ended = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  /** Set: what comes is thrown away, and if it has not ended until then, the connection is given up. */
  #tail: NodeJS.Timeout | undefined;

  constructor({ status, contentType }: AnswerHead, connection: Connection) {
    this.status = status;
    this.contentType = contentType;
    this.#connection = connection;
  }

  /** The body. Throws RangeError above `bytesMax`, Error when it is cut. */
  async whole(bytesMax: number): Promise<Buffer> {
    this.#aheadBytesMax = bytesMax;
    while (!this.#ended && this.#sizeBytes <= bytesMax) await this.#more();
    if (this.#sizeBytes > bytesMax) throw new RangeError(`more than ${bytesMax} bytes`);
    if (this.#error !== undefined) throw this.#error;
    return Buffer.concat(this.#pieces, this.#sizeBytes);
  }

  /** The pieces of the body as they come. Throws Error when it is cut. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (piece !== undefined) {
        this.#sizeBytes -= piece.length;
        if (this.#sizeBytes === 0) this.#connection.resume();
        yield piece;
      } else if (this.#error !== undefined) throw this.#error;
      else if (this.#ended) return;
      else await this.#more();
    }
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Nobody wants what is left of it. */
  close(): void {
    if (!this.#ended) this.#connection.destroy(new Error('the answer was given up'));
  }

  /** Nobody wants what is left of it, which is little: the connection is kept if it ends within `ms`. */
  finish(ms: number): void {
    this.#pieces.length = 0;
    if (this.#ended) return;
    this.#tail = setTimeout(() => this.close(), ms);
    this.#connection.resume();
  }

  /** For the connection. */
  add(piece: Buffer): void {
    if (this.#tail !== undefined) return;
    this.#pieces.push(piece);
    this.#sizeBytes += piece.length;
    if (this.#sizeBytes > this.#aheadBytesMax) this.#connection.pause();
    this.#wake?.();
  }

  /** For the connection. */
  end(error?: Error): void {
    clearTimeout(this.#tail);
    this.#ended = true;
    this.#error ??= error;
    this.#wake?.();
  }
}

interface Exchange extends Disposable {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
  answer: Answer | undefined;
}

export class Connection {
  readonly #socket: Socket;
  readonly #onIdle: (connection: Connection) => void;
  readonly #onClose: (connection: Connection) => void;
  readonly #reader: AnswerReader;
  #exchange: Exchange | undefined;
  #keepAlive = true;
  #error: Error | undefined;
  /** Requests that were sent on it. */
  requests = 0;

  /** `onIdle`: another request may be sent. `onClose`: none may any more. */
  constructor(
    address: Address,
    onIdle: (connection: Connection) => void,
    onClose: (connection: Connection) => void,
  ) {
    this.#onIdle = onIdle;
    this.#onClose = onClose;
    this.#reader = new AnswerReader({
      head: (head) => this.#begin(head),
      piece: (bytes) => this.#exchange?.answer?.add(bytes),
      end: () => this.#end(),
    });
    const { host, port } = address;
    this.#socket = address.tls
      ? connectTls({ host, port, servername: host, ALPNProtocols: ['http/1.1'] })
      : connectPlain(port, host);
    this.#listen(this.#socket);
  }

  #listen(socket: Socket): void {
    const late = new Error(`no connection within ${ENGINE_CONNECT_MS} ms`);
    const timer = setTimeout(() => socket.destroy(late), ENGINE_CONNECT_MS);
    for (const event of ['connect', 'close'] as const) socket.once(event, () => clearTimeout(timer));
    socket.setNoDelay(true);
    socket.on('data', (bytes: Buffer) => this.#read(() => this.#reader.push(bytes)));
    socket.once('end', () => this.#read(() => this.#reader.close()));
    socket.on('error', (error) => (this.#error ??= error));
    socket.once('close', () => {
      this.#onClose(this);
      this.#fail(this.#error ?? new Error('the connection was closed'));
    });
  }

  /** Resolves with the head of the answer; rejects with Error where none comes. An abort cuts the body, too. */
  send(head: string, body: readonly Buffer[], signal: AbortSignal): Promise<Answer> {
    this.requests++;
    const socket = this.#socket;
    const abort = (): void => this.destroy(new Error('the call was aborted'));
    signal.addEventListener('abort', abort, { once: true });
    return new Promise((resolve, reject) => {
      const release = (): void => signal.removeEventListener('abort', abort);
      this.#exchange = { resolve, reject, answer: undefined, [Symbol.dispose]: release };
      socket.cork();
      socket.write(head, 'latin1');
      for (const piece of body) socket.write(piece);
      socket.uncork();
    });
  }

  destroy(error: Error): void {
    this.#error ??= error;
    this.#socket.destroy();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  #read(read: () => void): void {
    try {
      read();
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  #begin(head: AnswerHead): void {
    const { status, keepAlive } = head;
    if (this.#exchange === undefined) throw new Error(`an answer of status ${status} to no request`);
    this.#keepAlive = keepAlive;
    const answer = new Answer(head, this);
    this.#exchange.answer = answer;
    this.#exchange.resolve(answer);
  }

  #end(): void {
    this.#done()?.answer?.end();
    if (this.#keepAlive && !this.#socket.destroyed) {
      this.resume();
      this.#onIdle(this);
    } else this.#socket.destroy();
  }

  #done(): Exchange | undefined {
    const exchange = this.#exchange;
    this.#exchange = undefined;
    exchange?.[Symbol.dispose]();
    return exchange;
  }

  #fail(error: Error): void {
    const exchange = this.#done();
    if (exchange?.answer === undefined) exchange?.reject(error);
    else exchange.answer.end(error);
  }
}
