// One connection to an engine, and one exchange at a time on it. Node's own client makes streams, an agent's events and
// a parsed address for each request, a quarter of what a small call cost the proxy; this does what an engine needs.
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { ENGINE_CONNECT_MS } from '../../../common/limits.ts';
import { type AnswerHead, AnswerReader } from '../../domain/http-answer.ts';
import { Answer } from './answer.ts';

/** Where an engine listens. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly tls: boolean;
}

/** For how long things may take at a connection. */
export interface WireLimits {
  /** Until a request can be sent on it, TLS agreed on. */
  readonly connectMs: number;
  /** Between two requests; then a new one is made, as what lies between forgets flows and says nothing. */
  readonly idleMs: number;
}

export const WIRE_LIMITS: WireLimits = { connectMs: ENGINE_CONNECT_MS, idleMs: 30_000 };

/** Of silence, before the other side is asked for a sign of life; without one the connection breaks 10 s later. */
const KEEP_ALIVE_MS = 15_000;

/** The engine answers nothing, not even what it could answer at once. */
export class Silence extends Error {}

/** What comes on any connection is read into it and taken before the next read: Node makes 64 KiB for each by itself. */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/** What is not longer goes out in one piece, as each piece of a write costs more than a copy. */
const COPIED_BYTES_MAX = 64 * 1024;

function write(socket: Socket, head: string, body: readonly Buffer[]): void {
  if (body.reduce((sum, { length }) => sum + length, 0) <= COPIED_BYTES_MAX) {
    socket.write(Buffer.concat([Buffer.from(head, 'latin1'), ...body]));
    return;
  }
  socket.cork();
  socket.write(head, 'latin1');
  for (const one of body) socket.write(one);
  socket.uncork();
}

/** Gets an answer as its head comes, before anything of its body. */
export type OnHead = (answer: Answer) => void;

interface Exchange extends Disposable {
  readonly onHead: OnHead | undefined;
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
  /** When the last one was done, by `performance.now()`. */
  idleSince = 0;

  /** `onIdle`: another request may be sent. `onClose`: none may any more. */
  constructor(
    address: Address,
    { connectMs }: Pick<WireLimits, 'connectMs'>,
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
    const to = { host, port, onread: { buffer: READ_BUFFER, callback: (n: number) => this.#take(n) } };
    this.#socket = address.tls
      ? connectTls({ ...to, servername: host, ALPNProtocols: ['http/1.1'] })
      : connectPlain(to);
    this.#limit(this.#socket, connectMs, address.tls ? 'secureConnect' : 'connect');
    this.#listen(this.#socket);
  }

  #limit(socket: Socket, connectMs: number, ready: string): void {
    const late = new Error(`no connection within ${connectMs} ms`);
    const timer = setTimeout(() => socket.destroy(late), connectMs);
    for (const event of [ready, 'close']) socket.once(event, () => clearTimeout(timer));
  }

  #listen(socket: Socket): void {
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.once('end', () => this.#ended());
    socket.on('error', (error) => (this.#error ??= error));
    socket.once('close', () => {
      this.#onClose(this);
      this.#fail(this.#error ?? new Error('the connection was closed'));
    });
  }

  /** Resolves with the head of the answer; rejects with Error where none comes. An abort cuts the body, too. */
  send(head: string, body: readonly Buffer[], signal: AbortSignal, onHead?: OnHead): Promise<Answer> {
    this.requests++;
    const socket = this.#socket;
    const abort = (): void => this.destroy(new Error('the call was aborted'));
    signal.addEventListener('abort', abort, { once: true });
    return new Promise((resolve, reject) => {
      const release = (): void => signal.removeEventListener('abort', abort);
      this.#exchange = { onHead, resolve, reject, answer: undefined, [Symbol.dispose]: release };
      write(socket, head, body);
    });
  }

  destroy(error: Error): void {
    this.#error ??= error;
    this.#socket.destroy();
  }

  /** Give its call up if nothing of the answer's body has come. */
  giveUpSilent(why: Silence): void {
    const exchange = this.#exchange;
    if (exchange !== undefined && exchange.answer?.begun !== true) this.destroy(why);
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  /** So many bytes are in the buffer. */
  #take(sizeBytes: number): boolean {
    try {
      this.#reader.push(READ_BUFFER.subarray(0, sizeBytes));
      this.#exchange?.answer?.flush();
    } catch (error) {
      this.destroy(error as Error);
    }
    return true;
  }

  #ended(): void {
    try {
      this.#reader.close();
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
    this.#exchange.onHead?.(answer);
    this.#exchange?.resolve(answer);
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
