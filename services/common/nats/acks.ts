// Publishes that wait for their acknowledgement from the stream. The client's own request makes an error with a stack,
// a timer and several promises for each one, half of what a small record costs; here one subscription takes all
// answers and one timer finds those that are late.
import { createInbox, type Msg, type MsgHdrs, type NatsConnection } from 'nats';
import { PUBLISH_ACK_MS } from '../limits.ts';

/** What JetStream answers. */
export interface StoreAck {
  readonly seq: number;
  /** An equal message id was there already. */
  readonly duplicate?: boolean;
}

interface ApiError {
  readonly err_code: number;
  readonly description: string;
}

interface Waiting {
  readonly resolve: (ack: StoreAck) => void;
  readonly reject: (error: Error) => void;
  readonly lateMs: number;
}

/** Between two looks for answers that are late. */
const LOOK_MS = PUBLISH_ACK_MS / 5;

export class Acks {
  readonly #nc: NatsConnection;
  readonly #inbox = createInbox();
  /** Oldest first. */
  readonly #waiting = new Map<string, Waiting>();
  #published = 0;
  #looks: NodeJS.Timeout | undefined;

  constructor(nc: NatsConnection) {
    this.#nc = nc;
    nc.subscribe(`${this.#inbox}.*`, { callback: (_, message) => this.#answered(message) });
  }

  /** Store; throws where the stream refuses, with its `api_error`, and where no answer comes within PUBLISH_ACK_MS. */
  store(subject: string, data: Uint8Array, headers: MsgHdrs | undefined): Promise<StoreAck> {
    const reply = `${this.#inbox}.${(this.#published++).toString(36)}`;
    return new Promise((resolve, reject) => {
      this.#nc.publish(subject, data, { reply, ...(headers && { headers }) });
      this.#waiting.set(reply, { resolve, reject, lateMs: performance.now() + PUBLISH_ACK_MS });
      this.#looks ??= setInterval(() => this.#look(), LOOK_MS).unref();
    });
  }

  #answered(message: Msg): void {
    const waiting = this.#waiting.get(message.subject);
    this.#waiting.delete(message.subject);
    if (waiting === undefined) return;
    if (message.data.length === 0) {
      waiting.reject(new Error(`no stream takes it (${message.headers?.code ?? 'no answer'})`));
      return;
    }
    const answer = JSON.parse(Buffer.from(message.data).toString()) as StoreAck & { error?: ApiError };
    if (answer.error === undefined) waiting.resolve(answer);
    else waiting.reject(Object.assign(new Error(answer.error.description), { api_error: answer.error }));
  }

  #look(): void {
    const now = performance.now();
    for (const [reply, { lateMs, reject }] of this.#waiting) {
      if (lateMs > now) break;
      this.#waiting.delete(reply);
      reject(new Error(`no acknowledgement within ${PUBLISH_ACK_MS} ms`));
    }
    if (this.#waiting.size > 0) return;
    clearInterval(this.#looks);
    this.#looks = undefined;
  }
}
