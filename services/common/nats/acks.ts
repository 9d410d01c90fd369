// Publishes that wait for their acknowledgement from the stream. The client's own request makes an error with a stack,
// a timer and several promises for each one, half of what a small record costs; here one subscription takes all
// answers, one timer finds those that are late, and what is sent together goes out in one write: each write costs a
// system call here and wakes the server there.
import { createInbox, type Msg, type MsgHdrs, type NatsConnection } from 'nats';
import { PUBLISH_ACK_MS } from '../limits.ts';
import type { Connection } from './connection.ts';
import { whyNotStored } from './full-store.ts';
import type { Refusals } from './refusals.ts';

/** What JetStream answers. */
export interface StoreAck {
  readonly seq: number;
  /** An equal message id was there already. */
  readonly duplicate?: boolean;
}

/** Headers by name. Values are single lines. */
export type Fields = Readonly<Record<string, string>>;

interface ApiError {
  readonly err_code: number;
  readonly description: string;
}

interface Waiting {
  readonly subject: string;
  readonly resolve: (ack: StoreAck) => void;
  readonly reject: (error: Error) => void;
  readonly lateMs: number;
}

interface Sending {
  readonly send: () => void;
  readonly failed: (error: Error) => void;
}

/** Between two looks for answers that are late. */
const LOOK_MS = PUBLISH_ACK_MS / 5;
/** Of a server that runs: one whose store is lost, or of a cluster too few of which run. */
const NO_STREAM =
  'NATS has no stream that takes it: start it with the store that it had, and most servers of its cluster; to begin anew without that store, start all services again';
/** What nobody waits for goes out by itself where nothing has been done for so long. */
const LATER_MS = 250;

export class Acks {
  readonly #nc: NatsConnection;
  readonly #refusals: Refusals;
  readonly #connection: Connection;
  readonly #inbox = createInbox();
  /** Oldest first. */
  readonly #waiting = new Map<string, Waiting>();
  /** To be done when what the process was woken for is done. */
  #queue: Sending[] = [];
  #sending = false;
  #newest: Sending | undefined;
  #later: NodeJS.Timeout | undefined;
  #published = 0;
  #looks: NodeJS.Timeout | undefined;

  constructor(nc: NatsConnection, refusals: Refusals, connection: Connection) {
    this.#nc = nc;
    this.#refusals = refusals;
    this.#connection = connection;
    nc.subscribe(`${this.#inbox}.*`, { callback: (_, message) => this.#answered(message) });
  }

  /**
   * Store; rejects where the stream refuses, with its `api_error`, and where no answer comes within PUBLISH_ACK_MS: with
   * NATS_REFUSED where the server forbids it, and NATS_STORE_FULL where it says so when it is asked.
   */
  store(subject: string, data: Uint8Array, fields: Fields): Promise<StoreAck> {
    return new Promise((resolve, reject) => {
      const waiting = { subject, resolve, reject, lateMs: performance.now() + PUBLISH_ACK_MS };
      this.soon(() => this.#publish(data, fields, waiting), reject);
    });
  }

  /** Send in one write with what else is sent in this turn, in order; what it throws is told to `failed` and else lost. */
  soon(send: () => void, failed: (error: Error) => void = () => {}): void {
    if (!this.#sending) setImmediate(() => this.#send());
    this.#sending = true;
    this.#queue.push({ send, failed });
  }

  /**
   * Send with what is sent next, in the same write. The newest one waits for another: where all work is acknowledged its
   * stream is empty, and the server makes a file anew for the next piece.
   */
  later(send: () => void): void {
    if (this.#later === undefined) this.#later = setTimeout(() => this.flush(), LATER_MS);
    else this.#later.refresh();
    if (this.#newest !== undefined) this.#queue.push(this.#newest);
    this.#newest = { send, failed: () => {} };
  }

  /** All that waits, now. */
  flush(): void {
    clearTimeout(this.#later);
    this.#later = undefined;
    if (this.#newest !== undefined) this.#queue.push(this.#newest);
    this.#newest = undefined;
    this.#send();
  }

  /** The client writes once what is published in one go. */
  #send(): void {
    const queue = this.#queue;
    this.#queue = [];
    this.#sending = false;
    for (const { send, failed } of queue) {
      try {
        send();
      } catch (error) {
        failed(error as Error);
      }
    }
  }

  #publish(data: Uint8Array, fields: Fields, waiting: Waiting): void {
    const reply = `${this.#inbox}.${(this.#published++).toString(36)}`;
    this.#nc.publish(waiting.subject, data, { reply, ...headersOf(fields) });
    this.#waiting.set(reply, waiting);
    this.#looks ??= setInterval(() => this.#look(), LOOK_MS).unref();
  }

  #answered(message: Msg): void {
    const waiting = this.#waiting.get(message.subject);
    this.#waiting.delete(message.subject);
    if (waiting === undefined) return;
    if (message.data.length === 0) {
      waiting.reject(new Error(NO_STREAM));
      return;
    }
    const answer = JSON.parse(Buffer.from(message.data).toString()) as StoreAck & { error?: ApiError };
    if (answer.error === undefined) waiting.resolve(answer);
    else waiting.reject(Object.assign(new Error(answer.error.description), { api_error: answer.error }));
  }

  #look(): void {
    const now = performance.now();
    const late: Waiting[] = [];
    for (const [reply, waiting] of this.#waiting) {
      if (waiting.lateMs > now) break;
      this.#waiting.delete(reply);
      late.push(waiting);
    }
    if (late.length > 0) void this.#refuse(late);
    if (this.#waiting.size > 0) return;
    clearInterval(this.#looks);
    this.#looks = undefined;
  }

  /** One is asked for, for all: their streams have the same disk. */
  async #refuse(late: readonly Waiting[]): Promise<void> {
    const inbox = `${this.#inbox}.*`;
    const unknown = late.filter(({ subject, reject }) => {
      const refused = this.#refusals.of(subject, inbox);
      if (refused !== undefined) reject(refused);
      return refused === undefined;
    });
    if (unknown.length === 0) return;
    const full = await whyNotStored(this.#nc, unknown[0]?.subject ?? '');
    const why = this.#connection.problem ?? `no acknowledgement within ${PUBLISH_ACK_MS} ms`;
    for (const { reject } of unknown) reject(full ?? new Error(why));
  }
}

const LINE_ENDS = /[\r\n]/;

/** All that publishing takes of the client's own headers, which look through each other for every one that is set. */
function headersOf(fields: Fields): { headers?: MsgHdrs } {
  let text = '';
  for (const name in fields) {
    const value = fields[name] as string;
    if (LINE_ENDS.test(value)) throw new TypeError(`${name} is more than one line`);
    text += `${name}: ${value}\r\n`;
  }
  if (text === '') return {};
  const encode = (): Buffer => Buffer.from(`NATS/1.0\r\n${text}\r\n`);
  return { headers: { encode } as unknown as MsgHdrs };
}
