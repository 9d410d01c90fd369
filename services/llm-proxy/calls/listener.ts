// A request that hears a reply as a stream. Each has a writer of its own, so that one that joins later is told what was
// said before in a form that nobody else was.
import type { ServerResponse } from 'node:http';
import type { PolarError } from '../../common/errors.ts';
import type { StreamWriter } from '../dialects/dialect.ts';
import type { JsonObject } from '../domain/json.ts';
import { EventRelay } from '../http/event-relay.ts';

export class Listener implements Disposable {
  readonly #writer: StreamWriter;
  readonly #relay: EventRelay;
  /** To be sent when all that came at once is taken. */
  #seen = '';
  /** What ends the reply waits here. */
  #held = '';

  constructor(response: ServerResponse, writer: StreamWriter) {
    this.#writer = writer;
    this.#relay = new EventRelay(response, writer);
  }

  [Symbol.dispose](): void {
    this.#relay[Symbol.dispose]();
  }

  /** May change the chunk. */
  take(chunk: JsonObject, hold: boolean): void {
    const text = this.#writer.chunk(chunk);
    if (hold) this.#held += text;
    else this.#seen += text;
  }

  /** Something is to be sent. */
  get waits(): boolean {
    return this.#seen !== '';
  }

  /** Send it; a promise while the harness does not read. It rejects with the signal's reason. */
  flush(signal: AbortSignal): Promise<void> | undefined {
    return this.#relay.send(this.#taken(), signal);
  }

  /** Send what was said before it joined, without waiting. */
  catchUp(past: Iterable<JsonObject>, hold: boolean): void {
    for (const chunk of past) this.take(chunk, hold);
    if (this.waits) this.#relay.write(this.#taken());
  }

  /** Send what was held, and end. */
  end(): void {
    this.#relay.end(this.#taken() + this.#held + this.#writer.end());
  }

  fail(error: PolarError): void {
    this.#relay.fail(error);
  }

  #taken(): string {
    const seen = this.#seen;
    this.#seen = '';
    return seen;
  }
}
