// What a durable consumer is asked for. The client makes a subscription, an iterator and two timers for each pull, and
// tells the server of the subscription twice; here one subscription takes the answers to all.
import { createInbox, type Msg, type MsgHdrs, nanos, type Status } from 'nats';
import { WORK_PULL_MS } from '../limits.ts';
import type { Bus } from './bus.ts';

/** The server says that a pull is over; where it does not, it is asked again so much later. */
const GRACE_MS = WORK_PULL_MS / 20;
/** Statuses that end the consumer, and no single pull: a request that is wrong, and nobody who would answer it. */
const BROKEN = new Set([400, 503]);
const DELETED = 409;
const NANOS_PER_MS = 1e6;

interface Pull {
  readonly id: string;
  readonly take: (message: PulledMessage) => void;
  left: number;
  readonly over: () => void;
  readonly broken: (error: Error) => void;
}

export class Pulls implements Disposable {
  readonly #bus: Bus;
  readonly #subject: string;
  readonly #inbox = createInbox();
  readonly #statuses: AsyncIterable<Status> & { stop(): void };
  readonly #subscription: Disposable;
  readonly #createdMs: number;
  #asked = 0;
  #pull: Pull | undefined;
  #isOld = false;

  /** `createdMs`: when the consumer was made, by the clock of NATS. */
  constructor(bus: Bus, stream: string, durable: string, createdMs: number) {
    this.#bus = bus;
    this.#createdMs = createdMs;
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${durable}`;
    const subscription = bus.nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => (error === null ? this.#told(message) : this.#pull?.broken(error)),
    });
    this.#subscription = { [Symbol.dispose]: () => subscription.unsubscribe() };
    // The client has `stop`; its published type does not say so.
    this.#statuses = bus.nc.status() as AsyncIterable<Status> & { stop(): void };
    void this.#watch();
  }

  /** The connection is another one since, maybe to a server that was started anew: the consumer is to be declared again. */
  get isOld(): boolean {
    return this.#isOld;
  }

  /**
   * Up to `count` messages, as they come; resolves when all have, WORK_PULL_MS are over or the signal aborts. One pull at a
   * time. Throws where the consumer is there no more.
   */
  async pull(count: number, take: Pull['take'], signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject: broken } = Promise.withResolvers<void>();
    const over = (): void => resolve();
    const id = (this.#asked++).toString(36);
    const pull: Pull = { id, take, left: count, over, broken };
    const timer = setTimeout(over, WORK_PULL_MS + GRACE_MS);
    signal.addEventListener('abort', over, { once: true });
    this.#pull = pull;
    try {
      this.#bus.acks.soon(() => this.#send(pull), broken);
      await promise;
    } finally {
      this.#pull = undefined;
      clearTimeout(timer);
      signal.removeEventListener('abort', over);
    }
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
    this.#statuses.stop();
  }

  #send({ id, left: batch }: Pull): void {
    const request = JSON.stringify({ batch, expires: nanos(WORK_PULL_MS) });
    this.#bus.nc.publish(this.#subject, request, { reply: `${this.#inbox}.${id}` });
  }

  #told(message: Msg): void {
    const pull = this.#pull;
    // Statuses come to the inbox, messages as what they were published as.
    if (message.subject.startsWith(this.#inbox)) {
      if (pull !== undefined && message.subject.endsWith(`.${pull.id}`)) ended(pull, message.headers);
      return;
    }
    const pulled = new PulledMessage(message, this.#createdMs);
    if (pull === undefined || pull.left === 0) {
      // Of a pull that was given up when the connection broke, and that the server has kept.
      pulled.nak(0);
      return;
    }
    pull.left--;
    pull.take(pulled);
    if (pull.left === 0) pull.over();
  }

  /** A pull does not outlive a server, and not every server lets it outlive a connection. */
  async #watch(): Promise<void> {
    for await (const { type, permissionContext: refused } of this.#statuses) {
      if (type === 'reconnect') {
        this.#isOld = true;
        this.#pull?.over();
      }
      const error = refused && this.#bus.refusals.of(this.#subject, `${this.#inbox}.*`);
      if (error !== undefined) this.#pull?.broken(error);
    }
  }
}

function ended({ over, broken }: Pull, headers: MsgHdrs | undefined): void {
  const { code = 0, description = '' } = headers ?? {};
  if (BROKEN.has(code) || (code === DELETED && /deleted/i.test(description))) {
    broken(new Error(`the consumer does not answer: ${code} ${description}`));
  } else over();
}

/** A message that waits for its acknowledgement. */
export class PulledMessage {
  readonly #message: Msg;
  /** Whichever delivery it is: its place in the stream, and when it was stored, as a stream that is made anew begins at 1. */
  readonly id: string;
  readonly seq: number;
  /** By this consumer, starting at 1. */
  readonly deliveryCount: number;
  /** It may have been delivered before: by this consumer, or by one that was there when it was stored. */
  readonly again: boolean;

  constructor(message: Msg, createdMs: number) {
    this.#message = message;
    // $JS.ACK[.domain.account].stream.consumer.deliveries.seq.consumer_seq.time.pending[.random]
    const tokens = (message.reply ?? '').split('.');
    const at = tokens.length === 9 ? 4 : 6;
    this.deliveryCount = Number(tokens[at]);
    this.seq = Number(tokens[at + 1]);
    this.id = `${tokens[at + 1]} ${tokens[at + 3]}`;
    this.again = this.deliveryCount > 1 || Number(tokens[at + 3]) / NANOS_PER_MS < createdMs;
  }

  get subject(): string {
    return this.#message.subject;
  }

  get data(): Uint8Array {
    return this.#message.data;
  }

  get headers(): MsgHdrs | undefined {
    return this.#message.headers;
  }

  /** Done. */
  ack(): void {
    this.#message.respond('+ACK');
  }

  /** It shall come again, after a pause. */
  nak(pauseMs: number): void {
    this.#message.respond(`-NAK ${JSON.stringify({ delay: nanos(pauseMs) })}`);
  }

  /** It shall not come again. */
  term(): void {
    this.#message.respond('+TERM');
  }

  /** It is being worked on: not to be delivered to anybody else yet. */
  working(): void {
    this.#message.respond('+WPI');
  }
}
