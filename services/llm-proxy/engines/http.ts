// One HTTP exchange with an engine: kept-alive connections, explicit time limits, typed failures.
import { PolarError } from '../../common/errors.ts';
import { ENGINE_REPLY_BYTES_MAX } from '../../common/limits.ts';
import type { ApiKey } from './api-key.ts';
import type { Answer } from './wire/answer.ts';
import { type OnHead, Silence } from './wire/connection.ts';
import { Connections } from './wire/connections.ts';

export { type Answer, Silence };

export class EngineConnection implements Disposable {
  /** The engine in messages: its address without credentials. */
  readonly name: string;
  readonly #path: string;
  readonly #connections: Connections;
  /** What every request says of itself. */
  readonly #fields: string;

  /** `baseUrl` with or without /v1. */
  constructor(baseUrl: string, key?: ApiKey) {
    const url = new URL(baseUrl);
    const { origin, protocol, hostname, port, host, pathname } = url;
    const tls = protocol === 'https:';
    this.name = origin;
    this.#path = pathname.replace(/\/+$/, '').replace(/\/v1$/, '');
    this.#connections = new Connections({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? (tls ? 443 : 80) : Number(port),
      tls,
    });
    const authorization = key?.authorization ?? basicIn(url);
    const own = authorization === undefined ? '' : `authorization: ${authorization}\r\n`;
    this.#fields = `host: ${host}\r\naccept: application/json, text/event-stream\r\naccept-encoding: identity\r\n${own}`;
  }

  [Symbol.dispose](): void {
    this.#connections[Symbol.dispose]();
  }

  /** Give up the requests of which no answer has begun: ENGINE_UNAVAILABLE. */
  giveUpSilent(why: Silence): void {
    this.#connections.giveUpSilent(why);
  }

  /** Resolves with the head of the answer. Throws ENGINE_UNAVAILABLE, or the signal's reason. */
  async request(
    method: 'GET' | 'POST',
    path: string,
    body: readonly Buffer[] | undefined,
    signal: AbortSignal,
    onHead?: OnHead,
  ): Promise<Answer> {
    const head = `${method} ${this.#path}${path} HTTP/1.1\r\n${this.#fields}${jsonFields(body)}\r\n`;
    try {
      return await this.#connections.send(head, body ?? [], signal, onHead);
    } catch (error) {
      throw signal.aborted ? signal.reason : unavailable(this.name, error);
    }
  }
}

/** Of an address with credentials in it. */
function basicIn({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}

function jsonFields(body: readonly Buffer[] | undefined): string {
  if (body === undefined) return '';
  const sizeBytes = body.reduce((sum, { length }) => sum + length, 0);
  return `content-type: application/json\r\ncontent-length: ${sizeBytes}\r\n`;
}

export const unavailable = (name: string, error: unknown): PolarError =>
  new PolarError(
    'ENGINE_UNAVAILABLE',
    `the engine at ${name} does not answer (${error instanceof Error ? error.message : String(error)}): ` +
      'start it, or set gateway.nodes[].inference.base_url to one that runs',
    { cause: error, retryAfterMs: 1_000 },
  );

/**
 * Reads the body when it is all there; its memory is used again once `read` has returned. Throws ENGINE_ERROR above
 * `bytesMax`, ENGINE_UNAVAILABLE when it is cut.
 */
export async function readWhole<T>(
  answer: Answer,
  name: string,
  signal: AbortSignal,
  read: (body: Buffer) => T,
  bytesMax = ENGINE_REPLY_BYTES_MAX,
): Promise<T> {
  try {
    return await answer.whole(bytesMax, read);
  } catch (error) {
    answer.close();
    if (error instanceof RangeError) throw tooLarge(bytesMax);
    throw signal.aborted ? signal.reason : unavailable(name, error);
  }
}

export const tooLarge = (bytesMax: number): PolarError =>
  new PolarError('ENGINE_ERROR', `the engine's reply is above ${bytesMax} bytes`);
