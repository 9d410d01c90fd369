// One reply on its way to every request that asked for it: a request that is equal to one in flight, as a client's own
// retry is, shares its generation.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { PolarError } from '../../common/errors.ts';
import type { Dialect, StreamWriter } from '../dialects/dialect.ts';
import { sendError, sendText } from '../http/answer.ts';
import { EventRelay } from '../http/event-relay.ts';

export class Delivery {
  readonly #dialect: Dialect;
  /** Unset: the reply goes out whole. */
  readonly #stream: StreamWriter | undefined;
  readonly #onLeft: () => void;
  readonly #requests = new Map<ServerResponse, EventRelay | undefined>();
  /** What has gone out of a stream, for those that join later. */
  #sent = '';
  #over = false;

  /** `onLeft` hears when nobody waits for the reply any more. */
  constructor(dialect: Dialect, stream: StreamWriter | undefined, onLeft: () => void) {
    this.#dialect = dialect;
    this.#stream = stream;
    this.#onLeft = onLeft;
  }

  /** Throws where the reply goes out whole. */
  get stream(): StreamWriter {
    if (this.#stream === undefined) throw new TypeError('no stream was asked for');
    return this.#stream;
  }

  /** Whether anybody has seen something of the reply. */
  get begun(): boolean {
    return this.#sent !== '';
  }

  /** Answer this request too. */
  join(response: ServerResponse): void {
    const relay = this.#stream && new EventRelay(response, this.#stream);
    this.#requests.set(response, relay);
    response.once('close', () => this.#leave(response));
    if (response.destroyed) this.#leave(response);
    else if (this.begun) relay?.write(this.#sent);
  }

  /** Resolves when the request is answered or its client has left. */
  async answered(response: ServerResponse): Promise<void> {
    if (!response.closed) await once(response, 'close');
  }

  /** Send framed events; a promise where somebody does not read them. It rejects with the signal's reason. */
  send(events: string, signal: AbortSignal): Promise<void> | undefined {
    this.#sent += events;
    let slow: Promise<void> | undefined;
    for (const relay of this.#requests.values()) {
      const read = relay?.send(events, signal);
      if (read !== undefined) slow = Promise.all([slow, read]).then(() => {});
    }
    return slow;
  }

  /** Send the last events and end. */
  end(events: string): void {
    this.#over = true;
    for (const relay of this.#requests.values()) relay?.end(events);
  }

  /** Send a whole reply, written as JSON. */
  whole(text: string): void {
    this.#over = true;
    for (const response of this.#requests.keys()) sendText(response, 200, text);
  }

  /** Tell all what went wrong: with a status where nothing has gone out, else as the dialect ends a broken stream. */
  fail(error: PolarError): void {
    this.#over = true;
    for (const [response, relay] of this.#requests) {
      relay?.fail(error);
      sendError(response, error, this.#dialect);
    }
  }

  #leave(response: ServerResponse): void {
    this.#requests.get(response)?.[Symbol.dispose]();
    this.#requests.delete(response);
    if (this.#requests.size === 0 && !this.#over) this.#onLeft();
  }
}
