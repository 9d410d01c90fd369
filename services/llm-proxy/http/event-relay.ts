// A streamed reply on its way to the harness: backpressure, and what keeps a silent connection open.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { PolarError } from '../../common/errors.ts';
import { REPLY_SILENCE_MS } from '../../common/limits.ts';
import type { StreamWriter } from '../dialects/dialect.ts';
import { isGone } from './answer.ts';
import { Outlet } from './outlet.ts';

export class EventRelay implements Disposable {
  readonly #response: ServerResponse;
  readonly #outlet: Outlet;
  readonly #writer: StreamWriter;
  readonly #silence: NodeJS.Timeout;
  /** Set while the harness does not read. */
  #unread: Promise<void> | undefined;

  constructor(response: ServerResponse, writer: StreamWriter, silenceMs = REPLY_SILENCE_MS) {
    this.#response = response;
    this.#outlet = new Outlet(response);
    this.#writer = writer;
    this.#silence = setTimeout(() => this.#keepAlive(), silenceMs);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#silence);
  }

  /** Send framed events; a promise while the harness does not read. It rejects with the signal's reason. */
  send(events: string, signal: AbortSignal): Promise<void> | undefined {
    if (isGone(this.#response)) return undefined;
    if (this.write(events)) return undefined;
    this.#unread ??= this.#drained(signal).finally(() => (this.#unread = undefined));
    // Not everybody waits for it.
    this.#unread.catch(() => {});
    return this.#unread;
  }

  /** A client that leaves instead of reading is no error of the reply. */
  async #drained(signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const left = (): void => over.abort();
    this.#response.once('close', left);
    try {
      await once(this.#outlet.flow, 'drain', { signal: AbortSignal.any([signal, over.signal]) });
    } catch {
      // All else is that the connection broke, which its close tells.
      if (signal.aborted) throw signal.reason;
    } finally {
      this.#response.off('close', left);
    }
  }

  /** Send without waiting; whether the harness reads. */
  write(events: string): boolean {
    this.#begin();
    this.#silence.refresh();
    return this.#outlet.write(events);
  }

  /** Send the last events and end. */
  end(events: string): void {
    this.#begin();
    this.#response.end(events);
  }

  /** End a reply that had begun and broke, where the dialect has an event for it; otherwise the connection is to be cut. */
  fail(error: PolarError): void {
    if (!this.#response.headersSent || this.#response.writableEnded) return;
    const event = this.#writer.failed(error);
    if (event !== undefined) this.#response.end(event);
  }

  /** The head goes out with the first event, so that a failure before it can still have a status of its own. */
  #begin(): void {
    if (this.#response.headersSent) return;
    this.#outlet.begin({
      'content-type': this.#writer.contentType,
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    });
  }

  #keepAlive(): void {
    if (isGone(this.#response) || this.#response.writableEnded) return;
    const filler = this.#writer.keepAlive();
    if (filler === '') return;
    this.#begin();
    if (!this.#outlet.flow.writableNeedDrain) this.#outlet.write(filler);
    this.#silence.refresh();
  }
}
