// Reads of stored messages over a connection of their own. The client's own moves every byte of a large message four
// times and makes an error, a timer and promises for each request; here a payload is moved once, from the socket into
// its place.
import { connect, type Socket } from 'node:net';
import { type Authenticator, createInbox, type NatsConnection } from 'nats';
import { abortable } from '../clock.ts';
import { DIRECT_READ_MS } from '../limits.ts';

/** Taken from the socket at once. */
const SOCKET_BYTES = 256 * 1024;
/** Between two looks for answers that are late. */
const LOOK_MS = DIRECT_READ_MS / 5;
/** Wait for one answer while others come in: it may stand behind them, or be lost. */
const READ_TOTAL_MS = DIRECT_READ_MS * 6;
const LINE_END = 10;
const LINE_END_BYTES = 2;
/** What headers begin with; a status stands behind it. */
const VERSION = 'NATS/1.0';
const SPACE = 32;
/** Status of what stands behind the last of several messages. */
const END_OF_LIST = '204';

export class Reads implements Disposable {
  readonly #nc: NatsConnection;
  readonly #authenticator: Authenticator | undefined;
  #connection: Promise<Connection> | undefined;
  #disposed = false;

  constructor(nc: NatsConnection, authenticator?: Authenticator) {
    this.#nc = nc;
    this.#authenticator = authenticator;
  }

  /** False where the client's own connection has TLS: this one has none. */
  get usable(): boolean {
    const { tls_required: required, tls_available: available } = this.#nc.info ?? {};
    return required !== true && available !== true;
  }

  /**
   * Puts the last message of each subject into its place; returns the places for which there is none of that size. For
   * streams with direct reads.
   */
  async fill(stream: string, places: readonly Place[]): Promise<Place[]> {
    const connection = await this.#connected();
    return await new Promise((resolve, reject) => {
      const filling = new Filling(places.length, resolve, reject);
      for (const place of places) connection.ask(`${stream}.${place.subject}`, '', filling.of(place));
    });
  }

  /** The message that JetStream finds by this query; undefined where there is none. For streams with direct reads. */
  async find(stream: string, query: object): Promise<StoredMessage | undefined> {
    return (await this.#found(stream, query, false))[0];
  }

  /** The messages that it finds one after another, at most `count`: fewer where there are no more, or they are large. */
  async list(stream: string, query: object, count: number): Promise<StoredMessage[]> {
    return await this.#found(stream, { ...query, batch: count }, true);
  }

  async #found(stream: string, query: object, isList: boolean): Promise<StoredMessage[]> {
    const connection = await this.#connected();
    const answers = await new Promise<readonly Answer[]>((resolve, reject) => {
      connection.ask(stream, JSON.stringify(query), new Finding(isList, resolve, reject));
    });
    return answers.map(messageOf);
  }

  #connected(): Promise<Connection> {
    return this.#connection ?? this.#open();
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#connection?.then((connection) => connection.close()).catch(() => {});
  }

  #open(): Promise<Connection> {
    if (this.#disposed) return Promise.reject(new Error('the connection for reads is closed'));
    const opening = Connection.open(this.#nc.getServer(), this.#authenticator, () => {
      if (this.#connection === opening) this.#connection = undefined;
    });
    this.#connection = opening;
    return opening;
  }
}

/** Where a message's payload is to lie; nobody else writes there meanwhile. */
export interface Place {
  readonly subject: string;
  readonly into: Uint8Array;
}

/** A message of a stream. */
export interface StoredMessage {
  readonly data: Uint8Array;
  readonly seq: number;
  readonly subject: string;
  readonly header: { readonly get: (name: string) => string };
  /** When it was stored, by the clock of NATS. */
  readonly time: Date;
}

interface Answer {
  readonly headers: Uint8Array;
  readonly payload: Uint8Array;
}

function messageOf({ headers: bytes, payload: data }: Answer): StoredMessage {
  // Who knows what was asked for looks at none of them.
  let headers: ReadonlyMap<string, string> | undefined;
  const get = (name: string): string => {
    headers ??= headersIn(bytes);
    return headers.get(name) ?? '';
  };
  return {
    data,
    get seq() {
      return Number(get('Nats-Sequence'));
    },
    get subject() {
      return get('Nats-Subject');
    },
    header: { get },
    get time() {
      return new Date(get('Nats-Time-Stamp') || 0);
    },
  };
}

function headersIn(bytes: Uint8Array): Map<string, string> {
  const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString().split('\r\n');
  return new Map(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
}

/** What was asked, and where the answer goes. */
interface Question {
  /** Memory for a payload of that size. */
  place(sizeBytes: number): Uint8Array;
  /** Whether this is all that is to come. */
  take(answer: Answer): boolean;
  /** Nothing comes, or nothing more. */
  end(): void;
  fail(error: Error): void;
}

/** Messages by a query; of a list, the server ends them with an answer that is none. */
class Finding implements Question {
  readonly #answers: Answer[] = [];
  readonly #isList: boolean;
  readonly #resolve: (answers: readonly Answer[]) => void;
  readonly fail: (error: Error) => void;

  constructor(isList: boolean, resolve: (answers: readonly Answer[]) => void, fail: (error: Error) => void) {
    this.#isList = isList;
    this.#resolve = resolve;
    this.fail = fail;
  }

  place(sizeBytes: number): Uint8Array {
    return ofItsOwn(sizeBytes);
  }

  take(answer: Answer): boolean {
    this.#answers.push(answer);
    if (!this.#isList) this.end();
    return !this.#isList;
  }

  end(): void {
    this.#resolve(this.#answers);
  }
}

/** Places that are filled together. */
class Filling {
  readonly #empty: Place[] = [];
  readonly #resolve: (empty: Place[]) => void;
  readonly #fail: (error: Error) => void;
  #left: number;
  #failed = false;

  constructor(left: number, resolve: (empty: Place[]) => void, fail: (error: Error) => void) {
    this.#left = left;
    this.#resolve = resolve;
    this.#fail = (error) => {
      this.#failed = true;
      fail(error);
    };
    if (left === 0) resolve([]);
  }

  of(place: Place): Question {
    const { into } = place;
    return {
      // Of those that failed other answers may be still to come, when the places are others' already.
      place: (sizeBytes) => (sizeBytes === into.byteLength && !this.#failed ? into : ofItsOwn(sizeBytes)),
      take: ({ payload }) => {
        this.#told(payload === into ? undefined : place);
        return true;
      },
      end: () => this.#told(place),
      fail: this.#fail,
    };
  }

  #told(empty: Place | undefined): void {
    if (empty !== undefined) this.#empty.push(empty);
    if (--this.#left === 0) this.#resolve(this.#empty);
  }
}

/** What holds a payload holds nothing else. */
const ofItsOwn = (sizeBytes: number): Uint8Array => Buffer.allocUnsafeSlow(sizeBytes);

interface Waiting {
  readonly question: Question;
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
  /** What the server says of itself before anything else. */
  readonly #greeting = Promise.withResolvers<{ readonly nonce?: string }>();
  /** When bytes last came in. */
  #heardMs = 0;
  #looks: NodeJS.Timeout | undefined;

  static async open(
    server: string,
    authenticator: Authenticator | undefined,
    onEnd: () => void,
  ): Promise<Connection> {
    const connection = new Connection(server, onEnd);
    const signal = AbortSignal.timeout(DIRECT_READ_MS);
    const greeting = abortable(connection.#greeting.promise, signal);
    const { nonce } = await greeting.catch((error: unknown) => {
      connection.close();
      throw error;
    });
    const login = authenticator?.(nonce) ?? {};
    const about = {
      verbose: false,
      pedantic: false,
      headers: true,
      no_responders: true,
      name: 'reads',
      ...login,
    };
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
  ask(what: string, query: string, question: Question): void {
    if (this.#socket.destroyed) {
      question.fail(broken());
      return;
    }
    const id = (this.#asked++).toString(36);
    this.#waiting.set(id, { question, askedMs: performance.now() });
    if (this.#requests === '') setImmediate(() => this.#send());
    this.#requests += `PUB $JS.API.DIRECT.GET.${what} ${this.#inbox}.${id} ${query.length}\r\n${query}\r\n`;
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
    this.#greeting.reject(broken());
    for (const { question } of this.#waiting.values()) question.fail(broken());
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
    else if (verb === 'INFO') this.#greeting.resolve(JSON.parse(line.slice(verb.length)));
    else if (verb === '-ERR') this.#socket.destroy();
  }

  #begin(id: string, headers: number, size: number): void {
    const payload = this.#waiting.get(id)?.question.place(size - headers) ?? ofItsOwn(size - headers);
    this.#incoming = { id, headers: Buffer.allocUnsafe(headers), payload, received: 0 };
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
    const question = this.#waiting.get(id)?.question;
    const status = statusOf(headers);
    if (status === undefined && question?.take({ headers, payload }) !== true) return;
    this.#waiting.delete(id);
    if (status === '404' || status === END_OF_LIST) question?.end();
    else if (status !== undefined) question?.fail(new Error(`no stream answers (${status})`));
  }
}

/** Of an answer that is no message. */
function statusOf(headers: Uint8Array): string | undefined {
  if (headers[VERSION.length] !== SPACE) return undefined;
  return Buffer.from(headers).toString('latin1', VERSION.length + 1, VERSION.length + 4);
}

const broken = (): Error => new Error('the connection for reads broke, or an answer was late');
