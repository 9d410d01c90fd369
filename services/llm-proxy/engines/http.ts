// One HTTP exchange with an engine: kept-alive connections, explicit time limits, typed failures.
import * as http from 'node:http';
import * as https from 'node:https';
import { PolarError } from '../../common/errors.ts';
import { CALLS_IN_FLIGHT_MAX, ENGINE_CONNECT_MS, ENGINE_REPLY_BYTES_MAX } from '../../common/limits.ts';
import type { ApiKey } from './api-key.ts';

export class EngineConnection implements Disposable {
  /** The engine in messages: its address without credentials. */
  readonly name: string;
  readonly #baseUrl: string;
  readonly #agent: http.Agent;
  readonly #key: ApiKey | undefined;

  /** `baseUrl` with or without /v1. */
  constructor(baseUrl: string, key?: ApiKey) {
    this.#key = key;
    this.name = new URL(baseUrl).origin;
    this.#baseUrl = baseUrl.replace(/\/+$/, '').replace(/\/v1$/, '');
    const Agent = baseUrl.startsWith('https:') ? https.Agent : http.Agent;
    this.#agent = new Agent({ keepAlive: true, maxSockets: CALLS_IN_FLIGHT_MAX, maxFreeSockets: 64 });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  /** Resolves with the head of the answer. Throws ENGINE_UNAVAILABLE, or the signal's reason. */
  request(
    method: 'GET' | 'POST',
    path: string,
    body: readonly Buffer[] | undefined,
    signal: AbortSignal,
  ): Promise<http.IncomingMessage> {
    const url = `${this.#baseUrl}${path}`;
    return new Promise((resolve, reject) => {
      const options: http.RequestOptions = {
        method,
        agent: this.#agent,
        headers: {
          ...(body === undefined ? {} : jsonHeaders(body)),
          ...(this.#key && { authorization: this.#key.authorization }),
        },
      };
      const request = url.startsWith('https:') ? https.request(url, options) : http.request(url, options);
      const abort = (): void => void request.destroy(asError(signal.reason));
      const fail = (error: NodeJS.ErrnoException): void => {
        signal.removeEventListener('abort', abort);
        if (signal.aborted) reject(signal.reason);
        // The engine closed a kept-alive connection while the request was on its way: not an answer to this request.
        else if (request.reusedSocket && error.code === 'ECONNRESET')
          resolve(this.request(method, path, body, signal));
        else reject(unavailable(this.name, error));
      };
      request.once('response', (response) => {
        // From here on an abort cuts the body; reading it then fails.
        response.once('close', () => signal.removeEventListener('abort', abort));
        resolve(response);
      });
      request.on('error', fail);
      limitConnect(request);
      if (signal.aborted) abort();
      else signal.addEventListener('abort', abort, { once: true });
      request.cork();
      for (const piece of body ?? []) request.write(piece);
      request.end();
    });
  }
}

const jsonHeaders = (body: readonly Buffer[]): http.OutgoingHttpHeaders => ({
  'content-type': 'application/json',
  'content-length': body.reduce((sum, { length }) => sum + length, 0),
  accept: 'application/json, text/event-stream',
});

function limitConnect(request: http.ClientRequest): void {
  request.once('socket', (socket) => {
    if (!socket.connecting) return;
    const late = new Error(`no connection within ${ENGINE_CONNECT_MS} ms`);
    const timer = setTimeout(() => request.destroy(late), ENGINE_CONNECT_MS);
    for (const event of ['connect', 'close'] as const) socket.once(event, () => clearTimeout(timer));
  });
}

const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error('aborted'));

export const unavailable = (name: string, error: unknown): PolarError =>
  new PolarError(
    'ENGINE_UNAVAILABLE',
    `the engine at ${name} does not answer (${error instanceof Error ? error.message : String(error)}): ` +
      'start it, or set gateway.nodes[].inference.base_url to one that runs',
    { cause: error, retryAfterMs: 1_000 },
  );

/** The body as text. Throws ENGINE_ERROR above ENGINE_REPLY_BYTES_MAX, ENGINE_UNAVAILABLE when it is cut. */
export async function readText(
  response: http.IncomingMessage,
  name: string,
  signal: AbortSignal,
): Promise<string> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length;
      if (sizeBytes > ENGINE_REPLY_BYTES_MAX) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof PolarError) throw error;
    throw signal.aborted ? signal.reason : unavailable(name, error);
  }
  return Buffer.concat(chunks).toString('utf8');
}

export const tooLarge = (): PolarError =>
  new PolarError('ENGINE_ERROR', `the engine's reply is above ${ENGINE_REPLY_BYTES_MAX} bytes`);
