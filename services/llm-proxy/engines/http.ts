// One HTTP exchange with an engine: kept-alive connections, explicit time limits, typed failures.
import { apiPath } from '../../common/api-path.ts';
import { PolarError } from '../../common/errors.ts';
import { ENGINE_REPLY_BYTES_MAX } from '../../common/limits.ts';
import type { ApiKey } from './api-key.ts';
import type { Answer } from './wire/answer.ts';
import { type OnHead, Silence } from './wire/connection.ts';
import { Connections } from './wire/connections.ts';

export { type Answer, Silence };

const V1 = '/v1/';

export class EngineConnection implements Disposable {
  /** The engine in messages: its address without credentials. */
  readonly name: string;
  readonly #path: string;
  /** In place of /v1. */
  readonly #apiPath: string;
  readonly #connections: Connections;
  /** What every request says of itself. */
  readonly #fields: string;

  /** `baseUrl` with or without /v1, or with another version, as it is. */
  constructor(baseUrl: string, key?: ApiKey) {
    const url = new URL(baseUrl);
    const { origin, protocol, hostname, port, host, pathname } = url;
    const tls = protocol === 'https:';
    this.name = origin;
    this.#apiPath = apiPath(pathname);
    this.#path = this.#apiPath.replace(/\/v1$/, '');
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
    const head = `${method} ${this.#pathOf(path)} HTTP/1.1\r\n${this.#fields}${jsonFields(body)}\r\n`;
    try {
      return await this.#connections.send(head, body ?? [], signal, onHead);
    } catch (error) {
      throw signal.aborted ? signal.reason : unavailable(this.name, error);
    }
  }

  #pathOf(path: string): string {
    return path.startsWith(V1) ? this.#apiPath + path.slice(V1.length - 1) : this.#path + path;
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
