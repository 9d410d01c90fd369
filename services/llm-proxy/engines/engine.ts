// The engine of a node: chat calls whole or as a stream, its model, its health.
import type { IncomingMessage } from 'node:http';
import { withTimeout } from '../../common/clock.ts';
import type { NodeTopology } from '../../common/config/topology.ts';
import { PolarError } from '../../common/errors.ts';
import { ENGINE_PROBE_MS, ENGINE_REPLY_BYTES_MAX } from '../../common/limits.ts';
import { arrayOf, isObject, type JsonObject, objectOf, textOf } from '../domain/json.ts';
import { DONE, EventDecoder } from '../domain/sse.ts';
import type { EngineAdapter } from './adapter.ts';
import { ADAPTERS } from './adapters.ts';
import { failureOfStatus, messageIn } from './failures.ts';
import { EngineConnection, readText, tooLarge } from './http.ts';
import { retried } from './retry.ts';

/** What is left of a stream after its last event, before its connection is given up. */
const TAIL_MS = 1_000;

export interface EngineHealth {
  readonly model: string;
  /** Empty: it answers. */
  readonly problem: string;
}

export class Engine implements Disposable {
  readonly adapter: EngineAdapter;
  readonly #connection: EngineConnection;
  readonly #modelServed: string;
  #modelFound: string | undefined;

  constructor(node: Pick<NodeTopology, 'inference' | 'model_served'>) {
    this.adapter = ADAPTERS[node.inference.engine];
    this.#connection = new EngineConnection(node.inference.base_url);
    this.#modelServed = node.model_served;
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }

  /** Its address without credentials. */
  get name(): string {
    return this.#connection.name;
  }

  /** The model that calls name: the node's `model_served`, else the engine's first one. */
  async model(signal: AbortSignal): Promise<string> {
    if (this.#modelServed !== '') return this.#modelServed;
    this.#modelFound ??= await retried(signal, () => this.#firstModel(signal));
    return this.#modelFound;
  }

  /** One try of a chat call, answered whole. Throws ENGINE_UNAVAILABLE, ENGINE_ERROR, ENGINE_REFUSED, the signal's reason. */
  async whole(body: JsonObject, signal: AbortSignal): Promise<JsonObject> {
    const response = await this.#post(JSON.stringify(body), signal);
    return this.#parse(await readText(response, this.#connection.name, signal));
  }

  /** One try of a chat call, chunk by chunk up to [DONE]. Throws as `whole`, and ENGINE_STREAM_CUT. */
  async *chunks(body: JsonObject, signal: AbortSignal): AsyncGenerator<JsonObject, void> {
    const response = await this.#post(JSON.stringify(body), signal);
    if (!String(response.headers['content-type']).includes('event-stream')) {
      response.destroy();
      throw new PolarError(
        'ENGINE_ERROR',
        `the engine at ${this.#connection.name} answered without a stream`,
      );
    }
    let done = false;
    try {
      yield* this.#events(response);
      done = true;
    } catch (error) {
      if (error instanceof PolarError) throw error;
      throw signal.aborted ? signal.reason : this.#cut(error);
    } finally {
      if (done) drain(response);
      else response.destroy();
    }
  }

  /** Ask it now, within ENGINE_PROBE_MS. */
  async probe(signal: AbortSignal): Promise<EngineHealth> {
    const limit = withTimeout(ENGINE_PROBE_MS, signal);
    try {
      const first = await this.#firstModel(limit);
      return { model: this.#modelServed === '' ? first : this.#modelServed, problem: '' };
    } catch (error) {
      const problem = error instanceof PolarError ? error.message : `no answer within ${ENGINE_PROBE_MS} ms`;
      return { model: this.#modelServed, problem };
    }
  }

  async #post(body: string, signal: AbortSignal): Promise<IncomingMessage> {
    const response = await this.#connection.request('POST', '/v1/chat/completions', body, signal);
    if (response.statusCode === 200) return response;
    // The model may have gone with another start of the engine.
    if (response.statusCode === 404) this.#modelFound = undefined;
    throw await this.#failure(response, signal);
  }

  async #failure(response: IncomingMessage, signal: AbortSignal): Promise<PolarError> {
    const text = await readText(response, this.#connection.name, signal);
    return failureOfStatus(this.#connection.name, response.statusCode ?? 0, messageIn(text));
  }

  async #firstModel(signal: AbortSignal): Promise<string> {
    const response = await this.#connection.request('GET', '/v1/models', undefined, signal);
    if (response.statusCode !== 200) throw await this.#failure(response, signal);
    const list = this.#parse(await readText(response, this.#connection.name, signal));
    const id = textOf(objectOf(arrayOf(list['data'])[0])['id']);
    if (id !== undefined) return id;
    throw new PolarError('ENGINE_ERROR', `the engine at ${this.#connection.name} serves no model`);
  }

  async *#events(response: IncomingMessage): AsyncGenerator<JsonObject, void> {
    const decoder = new EventDecoder();
    let sizeBytes = 0;
    for await (const bytes of response.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      sizeBytes += bytes.length;
      if (sizeBytes > ENGINE_REPLY_BYTES_MAX) throw tooLarge();
      for (const data of decoder.push(bytes)) {
        if (data === DONE) return;
        const chunk = this.#parse(data);
        if (isObject(chunk['error'])) {
          const { code, message } = chunk['error'];
          const status = typeof code === 'number' ? code : 500;
          throw failureOfStatus(this.#connection.name, status, textOf(message) ?? 'error in the stream');
        }
        yield chunk;
      }
    }
    throw this.#cut(new Error('no [DONE]'));
  }

  #parse(text: string): JsonObject {
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return value;
    } catch {}
    throw new PolarError(
      'ENGINE_ERROR',
      `the engine at ${this.#connection.name} answered with no JSON object`,
    );
  }

  #cut(error: unknown): PolarError {
    const why = error instanceof Error ? error.message : String(error);
    return new PolarError(
      'ENGINE_STREAM_CUT',
      `the engine at ${this.#connection.name} broke off a stream (${why})`,
      {
        cause: error,
      },
    );
  }
}

/** Read the rest, so that the connection can be used again. */
function drain(response: IncomingMessage): void {
  const timer = setTimeout(() => response.destroy(), TAIL_MS);
  response.once('close', () => clearTimeout(timer));
  // Not before the iterator has let go of it.
  setImmediate(() => response.resume());
}
