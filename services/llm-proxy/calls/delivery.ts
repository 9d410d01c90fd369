// One reply on its way to every request that asked for it: a request that is equal to one in flight, as a client's own
// retry is, shares its generation.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { PolarError } from '../../common/errors.ts';
import type { Dialect, StreamWriter } from '../dialects/dialect.ts';
import type { JsonObject } from '../domain/json.ts';
import { isGone, sendError, sendText } from '../http/answer.ts';
import { Listener } from './listener.ts';

const CALL_ID_HEADER = 'polar-call-id';

/** All that was taken so far as chunks of the same meaning, made anew. */
type Past = () => Iterable<JsonObject>;

export class Delivery {
  readonly #dialect: Dialect;
  readonly #callId: string;
  /** Unset: the reply goes out whole. */
  readonly #stream: (() => StreamWriter) | undefined;
  readonly #onLeft: () => void;
  readonly #requests = new Map<ServerResponse, Listener | undefined>();
  /** Theirs: a chunk comes to all of them. */
  #listeners: readonly Listener[] = [];
  #past: Past = () => [];
  #begun = false;
  #holds = false;
  #over = false;

  /** `onLeft` hears when nobody waits for the reply any more; `callId` is what the reply can be rewarded by. */
  constructor(dialect: Dialect, stream: (() => StreamWriter) | undefined, onLeft: () => void, callId = '') {
    this.#dialect = dialect;
    this.#callId = callId;
    this.#stream = stream;
    this.#onLeft = onLeft;
  }

  /** Whether anybody has seen something of the reply. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Whether anybody waits for the reply. */
  get awaited(): boolean {
    return this.#requests.size > 0;
  }

  /** Answer this request too. */
  join(response: ServerResponse): void {
    if (this.#callId !== '' && !isGone(response)) response.setHeader(CALL_ID_HEADER, this.#callId);
    const listener = this.#stream && new Listener(response, this.#stream());
    this.#requests.set(response, listener);
    if (listener !== undefined) this.#listeners = [...this.#listeners, listener];
    response.once('close', () => this.#leave(response));
    if (isGone(response)) this.#leave(response);
    else listener?.catchUp(this.#past(), this.#holds);
  }

  /** Resolves when the request is answered or its client has left. */
  async answered(response: ServerResponse): Promise<void> {
    if (!isGone(response)) await once(response, 'close');
  }

  /** Chunks come; `past` is asked for what requests that join then have missed. */
  begin(past: Past): void {
    this.#past = past;
  }

  /** What goes out with the next `flush`; from the first that is held on, all waits for the end. May change the chunk. */
  take(chunk: JsonObject, hold: boolean): void {
    this.#holds = hold;
    const alone = this.#requests.size === 1;
    for (const listener of this.#requests.values())
      listener?.take(alone ? chunk : structuredClone(chunk), hold);
  }

  /**
   * Send what was taken; a promise where nobody reads it, as the reply goes on at the pace of the fastest: one that hangs
   * holds up no other, and what it has not read waits in memory. It rejects with the signal's reason.
   */
  flush(signal: AbortSignal): Promise<void> | undefined {
    const slow: Promise<void>[] = [];
    let sent = 0;
    for (const listener of this.#listeners) {
      if (!listener.waits) continue;
      this.#begun = true;
      sent++;
      const read = listener.flush(signal);
      if (read !== undefined) slow.push(read);
    }
    return slow.length > 0 && slow.length === sent ? Promise.race(slow) : undefined;
  }

  /** Send what was held, and end. */
  end(): void {
    this.#over = true;
    for (const listener of this.#listeners) listener.end();
  }

  /** Send a whole reply, written as JSON. */
  whole(text: string): void {
    this.#over = true;
    for (const response of this.#requests.keys()) sendText(response, 200, text);
  }

  /** Tell all what went wrong: with a status where nothing has gone out, else as the dialect ends a broken stream. */
  fail(error: PolarError): void {
    this.#over = true;
    for (const [response, listener] of this.#requests) {
      listener?.fail(error);
      sendError(response, error, this.#dialect);
    }
  }

  #leave(response: ServerResponse): void {
    const listener = this.#requests.get(response);
    listener?.[Symbol.dispose]();
    this.#listeners = this.#listeners.filter((one) => one !== listener);
    this.#requests.delete(response);
    if (this.#requests.size === 0 && !this.#over) this.#onLeft();
  }
}
