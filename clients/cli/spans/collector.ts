// Sends spans to a collector by OTLP over HTTP: https://opentelemetry.io/docs/specs/otlp/#otlphttp
import { setTimeout as sleep } from 'node:timers/promises';
import { asPolarError, PolarError } from '../../../services/common/errors.ts';
import { retryAfterMs } from '../../../services/common/retry-after.ts';
import { exportRequest, type Span } from './otlp.ts';

/** Spans of one request. */
const SPANS_MAX = 512;
/** Of one request, its answer included. */
const REQUEST_MS = 10_000;
const TRIES_MAX = 5;
/** Before the second try; doubled with each. */
const PAUSE_MS = 500;
/** What a collector may ask to wait. */
const PAUSE_MS_MAX = 30_000;
/** Of an answer; what is longer is no answer of OTLP's, and is not read on. */
const ANSWER_BYTES_MAX = 64 * 1024;
/** Answers after which the same may be sent again. */
const AGAIN: readonly number[] = [429, 502, 503, 504];

export class Collector {
  readonly #url: URL;
  readonly #headers: Headers;
  readonly #version: string;
  #waiting: Span[] = [];
  /** Spans that it has taken. */
  sent = 0;
  /** Those that it would not have. */
  rejected = 0;

  /** `url` as OTEL_EXPORTER_OTLP_ENDPOINT has it: without `/v1/traces`. */
  constructor(url: string, headers: Headers, version: string) {
    this.#url = new URL(url);
    this.#url.pathname = `${this.#url.pathname.replace(/\/+$/, '')}/v1/traces`;
    this.#headers = new Headers(headers);
    this.#headers.set('content-type', 'application/json');
    this.#version = version;
  }

  /** Throws COLLECTOR_UNAVAILABLE. */
  async add(spans: readonly Span[]): Promise<void> {
    this.#waiting.push(...spans);
    while (this.#waiting.length >= SPANS_MAX) await this.#send(this.#waiting.splice(0, SPANS_MAX));
  }

  /** Sends what is left. Throws COLLECTOR_UNAVAILABLE. */
  async flush(): Promise<void> {
    if (this.#waiting.length > 0) await this.#send(this.#waiting.splice(0));
  }

  async #send(spans: readonly Span[]): Promise<void> {
    const body = JSON.stringify(exportRequest(spans, this.#version));
    for (let tries = 1; ; tries++) {
      try {
        const rejected = await this.#post(body);
        this.rejected += rejected;
        this.sent += spans.length - rejected;
        return;
      } catch (thrown) {
        const { retryAfterMs } = asPolarError(thrown);
        if (retryAfterMs === undefined || tries === TRIES_MAX) throw thrown;
        const pauseMs = Math.min(PAUSE_MS_MAX, Math.max(retryAfterMs, PAUSE_MS * 2 ** (tries - 1)));
        await sleep(pauseMs);
      }
    }
  }

  /** Resolves to how many spans it rejected. */
  async #post(body: string): Promise<number> {
    const response = await this.#fetch(body);
    if (response.ok) return rejectedIn(await beginOf(response));
    await response.body?.cancel();
    const again = AGAIN.includes(response.status)
      ? { retryAfterMs: retryAfterMs(response.headers) ?? 0 }
      : {};
    throw this.#failure(`answered with status ${response.status}`, again);
  }

  async #fetch(body: string): Promise<Response> {
    try {
      const signal = AbortSignal.timeout(REQUEST_MS);
      return await fetch(this.#url, {
        method: 'POST',
        headers: this.#headers,
        body,
        redirect: 'error',
        signal,
      });
    } catch (cause) {
      throw this.#failure('was not reached', { cause, retryAfterMs: 0 });
    }
  }

  readonly #failure = (what: string, options: { cause?: unknown; retryAfterMs?: number }): PolarError =>
    new PolarError('COLLECTOR_UNAVAILABLE', `the collector at ${this.#url.origin} ${what}`, options);
}

/** `key=value,…`, values with percent signs, as OTEL_EXPORTER_OTLP_HEADERS has them. Throws INVALID_CONFIG. */
export function headersIn(text: string): Headers {
  const headers = new Headers();
  for (const pair of text.split(',').filter((one) => one.trim() !== '')) {
    const at = pair.indexOf('=');
    try {
      if (at < 0) throw new TypeError('no =');
      headers.append(pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim()));
    } catch {
      // Values are secrets.
      const message = 'OTEL_EXPORTER_OTLP_HEADERS must be like key=value,key=value';
      throw new PolarError('INVALID_CONFIG', message, {
        fields: [{ field: 'OTEL_EXPORTER_OTLP_HEADERS', description: 'must be like key=value,key=value' }],
      });
    }
  }
  return headers;
}

async function beginOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.byteLength;
    if (size > ANSWER_BYTES_MAX) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Of an answer that takes some; a body that is none of OTLP's says nothing. */
function rejectedIn(text: string): number {
  try {
    const answer = JSON.parse(text) as { partialSuccess?: { rejectedSpans?: string | number } };
    return Number(answer.partialSuccess?.rejectedSpans ?? 0) || 0;
  } catch {
    return 0;
  }
}
