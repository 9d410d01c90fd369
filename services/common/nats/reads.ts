// Reads of stored messages over a connection of their own. The client's own moves every byte of a large message four
// times and makes an error, a timer and promises for each request; here a payload is moved once, from the socket into
// its place.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInbox, type NatsConnection } from 'nats';
import { DIRECT_READ_MS } from '../limits.ts';

/** Taken from the socket at once. */
const SOCKET_BYTES = 256 * 1024;
/** Between two looks for answers that are late. */
const LOOK_MS = DIRECT_READ_MS / 5;
/** Wait for one answer while others come in: it may stand behind them, or be lost. */
const READ_TOTAL_MS = DIRECT_READ_MS * 6;
const LINE_END = 10;
const LINE_END_BYTES = 2;
/** Status of what stands behind the last of several messages. */
const END_OF_LIST = '204';

export class Reads implements Disposable {
  readonly #nc: NatsConnection;
  #connection: Promise<Connection> | undefined;
  #disposed = false;

  constructor(nc: NatsConnection) {
    this.#nc = nc;
  }

  /** False where the server wants TLS or credentials, which only the client's own connection has. */
  get usable(): boolean {
    const { tls_required: tls, auth_required: auth } = this.#nc.info ?? {};
    return tls !== true && auth !== true;
  }

  /** The payload of the last message of a subject; undefined where there is none. For streams with direct reads. */
  async last(stream: string, subject: string): Promise<Uint8Array | undefined> {
    return (await this.#ask(`${stream}.${subject}`, ''))?.payload;
  }

  /** The message that JetStream finds by this query; undefined where there is none. For streams with direct reads. */
  async find(stream: string, query: object): Promise<StoredMessage | undefined> {
    const answer = await this.#ask(stream, JSON.stringify(query));
    return answer && messageOf(answer);
  }

  /** The messages that it finds one after another, at most `count`: fewer where there are no more, or they are large. */
  async list(stream: string, query: object, count: number): Promise<StoredMessage[]> {
    const answers: Answer[] = [];
    await this.#ask(stream, JSON.stringify({ ...query, batch: count }), (answer) => answers.push(answer));
    return answers.map(messageOf);
  }

  async #ask(what: string, query: string, each?: Waiting['each']): Promise<Answer | undefined> {
    const connection = await (this.#connection ?? this.#open());
    return await connection.ask(`$JS.API.DIRECT.GET.${what}`, query, each);
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#connection?.then((connection) => connection.close()).catch(() => {});
  }

  #open(): Promise<Connection> {
    if (this.#disposed) return Promise.reject(new Error('the connection for reads is closed'));
    const opening = Connection.open(this.#nc.getServer(), () => {
      if (this.#connection === opening) this.#connection = undefined;
    });
    this.#connection = opening;
    return opening;
  }
}

/** A message of a stream. */
export interface StoredMessage {
  readonly data: Uint8Array;
  readonly seq: number;
  readonly subject: string;
  readonly header: { readonly get: (name: string) => string };
}

interface Answer {
  readonly headers: Uint8Array;
  readonly payload: Uint8Array;
}

function messageOf({ headers: bytes, payload }: Answer): StoredMessage {
  const headers = new Map(
    Buffer.from(bytes)
      .toString()
      .split('\r\n')
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
  );
  return {
    data: payload,
    seq: Number(headers.get('Nats-Sequence')),
    subject: headers.get('Nats-Subject') ?? '',
    header: { get: (name) => headers.get(name) ?? '' },
  };
}

interface Waiting {
  /** Takes all answers of a query for several messages, which the server ends with one that is none. */
  readonly each: ((answer: Answer) => void) | undefined;
  readonly resolve: (answer: Answer | undefined) => void;
  readonly reject: (error: Error) => void;
  readonly askedMs: number;
}

/** A message that is coming in: headers, payload, line end. */
interface Incoming {
  readonly id: string;
  readonly headers: Uint8Array;
  readonly payload: Uint8Array;
  received: number;
}

class Connection {
  readonly #socket: Socket;
  readonly #inbox = createInbox();
  /** Oldest first, by the last token of their reply subject. */
  readonly #waiting = new Map<string, Waiting>();
  #asked = 0;
  /** To be sent when what the process was woken for is done. */
  #requests = '';
  /** The line that is coming in, as far as it has. */
  #line = '';
  #incoming: Incoming | undefined;
  /** When bytes last came in. */
  #heardMs = 0;
  #looks: NodeJS.Timeout | undefined;

  static async open(server: string, onEnd: () => void): Promise<Connection> {
    const connection = new Connection(server, onEnd);
    const signal = AbortSignal.timeout(DIRECT_READ_MS);
    await once(connection.#socket, 'connect', { signal }).catch((error: unknown) => {
      connection.close();
      throw error;
    });
    const about = { verbose: false, pedantic: false, headers: true, no_responders: true, name: 'reads' };
    connection.#socket.write(`CONNECT ${JSON.stringify(about)}\r\nSUB ${connection.#inbox}.* 1\r\n`);
    return connection;
  }

  private constructor(server: string, onEnd: () => void) {
    const [, host = '127.0.0.1', port = '4222'] = /^\[?(.*?)\]?:(\d+)$/.exec(server) ?? [];
    const onread = {
      buffer: Buffer.allocUnsafeSlow(SOCKET_BYTES),
      callback: (size: number, buffer: Uint8Array): boolean => this.#read(buffer as Buffer, size),
    };
    this.#socket = connect({ host, port: Number(port), noDelay: true, onread });
    this.#socket.on('error', () => {});
    this.#socket.once('close', () => {
      onEnd();
      this.#ended();
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  /** The query is in ASCII. */
  ask(subject: string, query: string, each: Waiting['each']): Promise<Answer | undefined> {
    const id = (this.#asked++).toString(36);
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(broken());
      this.#waiting.set(id, { each, resolve, reject, askedMs: performance.now() });
      if (this.#requests === '') setImmediate(() => this.#send());
      this.#requests += `PUB ${subject} ${this.#inbox}.${id} ${query.length}\r\n${query}\r\n`;
    });
  }

  #send(): void {
    this.#socket.write(this.#requests, 'latin1');
    this.#requests = '';
    this.#looks ??= setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** An answer that is late means a connection that is broken. */
  #look(): void {
    const oldest = this.#waiting.values().next().value;
    if (oldest !== undefined && !this.#isLate(oldest)) return;
    if (oldest !== undefined) this.#socket.destroy();
    clearInterval(this.#looks);
    this.#looks = undefined;
  }

  #isLate({ askedMs }: Waiting): boolean {
    const now = performance.now();
    return now - Math.max(askedMs, this.#heardMs) > DIRECT_READ_MS || now - askedMs > READ_TOTAL_MS;
  }

  #ended(): void {
    clearInterval(this.#looks);
    for (const { reject } of this.#waiting.values()) reject(broken());
    this.#waiting.clear();
  }

  #read(buffer: Buffer, size: number): boolean {
    this.#heardMs = performance.now();
    for (let at = 0; at < size; ) {
      if (this.#incoming !== undefined) {
        at += this.#take(this.#incoming, buffer.subarray(at, size));
        continue;
      }
      const end = buffer.subarray(0, size).indexOf(LINE_END, at);
      this.#line += buffer.toString('latin1', at, end < 0 ? size : end + 1);
      if (end < 0) break;
      at = end + 1;
      this.#told(this.#line.trimEnd());
      this.#line = '';
    }
    return true;
  }

  #told(line: string): void {
    const [verb = '', subject = '', , ...sizes] = line.split(' ');
    if (verb === 'HMSG' || verb === 'MSG') {
      const headers = verb === 'HMSG' ? Number(sizes.at(-2)) : 0;
      this.#begin(subject.slice(subject.lastIndexOf('.') + 1), headers, Number(sizes.at(-1)));
    } else if (verb === 'PING') this.#socket.write('PONG\r\n');
    else if (verb === '-ERR') this.#socket.destroy();
  }

  #begin(id: string, headers: number, size: number): void {
    // Of its own: what holds a payload holds nothing else.
    const payload = Buffer.allocUnsafeSlow(size - headers);
    this.#incoming = { id, headers: new Uint8Array(headers), payload, received: 0 };
  }

  /** How many of the bytes are the message's. */
  #take(incoming: Incoming, bytes: Uint8Array): number {
    const { headers, payload, received } = incoming;
    const size = headers.length + payload.length;
    const taken = Math.min(bytes.length, size + LINE_END_BYTES - received);
    const inHeaders = Math.min(taken, Math.max(0, headers.length - received));
    if (inHeaders > 0) headers.set(bytes.subarray(0, inHeaders), received);
    const inPayload = Math.min(taken, size - received) - inHeaders;
    if (inPayload > 0) {
      payload.set(bytes.subarray(inHeaders, inHeaders + inPayload), received + inHeaders - headers.length);
    }
    incoming.received += taken;
    if (incoming.received === size + LINE_END_BYTES) this.#came(incoming);
    return taken;
  }

  #came({ id, headers, payload }: Incoming): void {
    this.#incoming = undefined;
    const waiting = this.#waiting.get(id);
    const status = /^NATS\/1\.0 (\d+)/.exec(Buffer.from(headers.subarray(0, 16)).toString('latin1'))?.[1];
    if (status === undefined && waiting?.each !== undefined) {
      waiting.each({ headers, payload });
      return;
    }
    this.#waiting.delete(id);
    if (status === undefined) waiting?.resolve({ headers, payload });
    else if (status === '404' || status === END_OF_LIST) waiting?.resolve(undefined);
    else waiting?.reject(new Error(`no stream answers (${status})`));
  }
}

const broken = (): Error => new Error('the connection for reads broke, or an answer was late');
