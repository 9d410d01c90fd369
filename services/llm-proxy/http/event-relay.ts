// A streamed reply on its way to the harness: backpressure, and comments that keep a silent connection open.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { REPLY_SILENCE_MS } from '../../common/limits.ts';
import { DONE, eventOf } from '../domain/sse.ts';

export class EventRelay implements Disposable {
  readonly #response: ServerResponse;
  readonly #silence: NodeJS.Timeout;

  constructor(response: ServerResponse, silenceMs = REPLY_SILENCE_MS) {
    this.#response = response;
    this.#silence = setTimeout(() => this.#comment(), silenceMs);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#silence);
  }

  /** Send one event; waits while the harness does not read. Throws the signal's reason. */
  async send(data: string, signal: AbortSignal): Promise<void> {
    this.#begin();
    this.#silence.refresh();
    if (this.#response.write(eventOf(data))) return;
    await once(this.#response, 'drain', { signal }).catch((error) => {
      throw signal.aborted ? signal.reason : error;
    });
  }

  /** Send the last events and end. */
  end(events: readonly string[]): void {
    this.#begin();
    this.#response.end([...events, DONE].map(eventOf).join(''));
  }

  /** The head goes out with the first event, so that a failure before it can still have a status of its own. */
  #begin(): void {
    if (this.#response.headersSent) return;
    this.#response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
  }

  #comment(): void {
    if (this.#response.destroyed || this.#response.writableEnded) return;
    this.#begin();
    if (!this.#response.writableNeedDrain) this.#response.write(': keep-alive\n\n');
    this.#silence.refresh();
  }
}
