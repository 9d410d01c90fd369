// One inference server: chat calls whole or as a stream, its model, its health.
import { withTimeout } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { parseLenient } from '../../common/lenient-json.ts';
import { ENGINE_PROBE_MS, ENGINE_REPLY_BYTES_MAX } from '../../common/limits.ts';
import { ChunkReader } from '../domain/alike-chunks.ts';
import { ChunkTidier, tidyReply } from '../domain/engine-calls.ts';
import { type EngineLoad, loadIn } from '../domain/engine-load.ts';
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf, textOf } from '../domain/json.ts';
import { parseReply } from '../domain/parse-reply.ts';
import type { ExpertShape } from '../domain/routed-experts.ts';
import { DONE, EventDecoder } from '../domain/sse.ts';
import type { EngineAdapter } from './adapter.ts';
import { ADAPTERS } from './adapters.ts';
import type { ApiKey } from './api-key.ts';
import { EXPERTS_REPLY_BYTES_MAX } from './ask-experts.ts';
import { failureOfStatus, isFault, messageIn, noStream, notJson, statusMeant } from './failures.ts';
import { Health } from './health.ts';
import { type Answer, EngineConnection, readWhole, Silence, tooLarge, unavailable } from './http.ts';
import type { EngineSpec } from './spec.ts';
import type { Taker } from './taker.ts';

/** What is left of a stream after its last event, before its connection is given up. */
const TAIL_MS = 1_000;
/** Types of errors that are the request's, where no status says so. */
const REFUSED_TYPES = ['invalid_request_error', 'BadRequestError'];
const newCallId = (): string => newId('call');
/** For a reply that has none: harnesses take replies of one id for one reply. */
export const newReplyId = (): string => newId('chatcmpl');
const CHAT = '/v1/chat/completions';
const METRICS = '/metrics';

/** What is sent: a JSON value, text as it is, or text in pieces. */
export type RequestBody = JsonObject | string | readonly Buffer[];

function piecesOf(body: RequestBody | undefined): readonly Buffer[] | undefined {
  if (body === undefined || Array.isArray(body)) return body;
  return [Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))];
}

const textOfBytes = (bytes: Buffer): string => bytes.toString('utf8');
const parseBytes = (bytes: Buffer): JsonValue | undefined => parseLenient(textOfBytes(bytes));

export interface Probe {
  readonly model: string;
  /** Empty: it answers. */
  readonly problem: string;
  /** It says nothing at all. */
  readonly silent: boolean;
}

export class Engine implements Disposable {
  readonly adapter: EngineAdapter;
  /** Set where it is asked for its routed experts. */
  readonly experts: ExpertShape | undefined;
  readonly health = new Health();
  readonly #connection: EngineConnection;
  readonly #key: ApiKey | undefined;
  readonly #modelServed: string;
  readonly #replyBytesMax: number;
  #modelFound: string | undefined;

  constructor(url: string, { kind, model, key, experts }: EngineSpec) {
    this.adapter = ADAPTERS[kind];
    this.experts = experts;
    this.#replyBytesMax = experts === undefined ? ENGINE_REPLY_BYTES_MAX : EXPERTS_REPLY_BYTES_MAX;
    this.#connection = new EngineConnection(url, key);
    this.#key = key;
    this.#modelServed = model;
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }

  /** Its address without credentials. */
  get name(): string {
    return this.#connection.name;
  }

  /** The model that calls name: the one of the topology, else its first one. */
  async model(signal: AbortSignal): Promise<string> {
    if (this.#modelServed !== '') return this.#modelServed;
    this.#modelFound ??= await this.#firstModel(signal);
    return this.#modelFound;
  }

  /**
   * One try of a chat call, answered whole. The entries of its logprobs are there only where they are to be shown. Throws
   * ENGINE_UNAVAILABLE, ENGINE_ERROR, ENGINE_REFUSED, the signal's reason.
   */
  async whole(body: RequestBody, signal: AbortSignal, showsLogprobs: boolean): Promise<JsonObject> {
    const keep = showsLogprobs || this.adapter.readsEntries === true;
    const parse = (bytes: Buffer): JsonValue | undefined => parseReply(bytes, keep);
    const reply = await this.#request('POST', CHAT, body, signal, (answer) =>
      this.#json(answer, signal, parse),
    );
    this.#refuseError(reply, 200);
    tidyReply(reply, newCallId);
    if (textOf(reply['id']) === undefined) reply['id'] = newReplyId();
    return reply;
  }

  /** POST to another path than that of chats; bytes go out as they are. Throws as `whole`. */
  async ask(path: string, body: RequestBody, signal: AbortSignal): Promise<JsonObject> {
    return await this.#request('POST', path, body, signal, (answer) => this.#json(answer, signal));
  }

  /** GET. Throws as `whole`. */
  async get(path: string, signal: AbortSignal): Promise<JsonObject> {
    return await this.#request('GET', path, undefined, signal, (answer) => this.#json(answer, signal));
  }

  /** One try of a chat call, chunk by chunk up to [DONE]. Throws as `whole`, ENGINE_STREAM_CUT, and what `to` throws. */
  async stream(body: RequestBody, to: Taker<JsonObject>, signal: AbortSignal): Promise<void> {
    await this.#request('POST', CHAT, body, signal, (answer) => this.#stream(answer, to, signal));
  }

  async #stream(answer: Answer, to: Taker<JsonObject>, signal: AbortSignal): Promise<void> {
    if (!/event-stream/i.test(answer.contentType)) {
      const text = await this.#text(answer, signal);
      const said = parseLenient(text);
      if (isObject(said)) {
        this.health.answered();
        this.#refuseError(said, 200);
      }
      throw noStream(this.name, text);
    }
    try {
      await this.#events(answer, to);
    } catch (error) {
      answer.close();
      if (signal.aborted) throw signal.reason;
      if (error instanceof PolarError) throw error;
      throw this.#cut(error);
    }
    this.health.answered();
  }

  /** Ask it now, within ENGINE_PROBE_MS. */
  async probe(signal: AbortSignal): Promise<Probe> {
    try {
      const first = await this.#firstModel(signal);
      return { model: this.#modelServed === '' ? first : this.#modelServed, problem: '', silent: false };
    } catch (error) {
      const { message, cause } = error as Error;
      return { model: this.#modelServed, problem: message, silent: cause instanceof Silence };
    }
  }

  /** Give up the calls of which it has not begun to answer anything: ENGINE_UNAVAILABLE. */
  giveUpSilent(): void {
    this.#connection.giveUpSilent(new Silence('it does not answer its probes either'));
  }

  /** Its load as it tells it within ENGINE_PROBE_MS; undefined where it does not. That says nothing about its health. */
  async load(signal: AbortSignal): Promise<EngineLoad | undefined> {
    const limit = withTimeout(ENGINE_PROBE_MS, signal);
    try {
      const answer = await this.#connection.request('GET', METRICS, undefined, limit);
      const text = await readWhole(answer, this.name, limit, textOfBytes);
      return answer.status === 200 ? loadIn(text) : undefined;
    } catch {
      return undefined;
    }
  }

  /** What comes of an answer of status 200: `use` gets it with its head, so that what follows is read as it comes. */
  async #request<T>(
    method: 'GET' | 'POST',
    path: string,
    body: RequestBody | undefined,
    signal: AbortSignal,
    use: (answer: Answer) => Promise<T>,
  ): Promise<T> {
    let used: Promise<T> | undefined;
    const onHead = (answer: Answer): void => {
      if (answer.status === 200) used = use(answer);
    };
    let answer: Answer;
    try {
      answer = await this.#connection.request(method, path, piecesOf(body), signal, onHead);
    } catch (error) {
      if (!signal.aborted) this.health.failed();
      throw error;
    }
    if (used !== undefined) return await used;
    // The model may have gone with another start of the engine.
    if (answer.status === 404) this.#modelFound = undefined;
    throw await this.#failure(answer, signal);
  }

  async #json(answer: Answer, signal: AbortSignal, parse = parseBytes): Promise<JsonObject> {
    const { value, text } = await this.#whole(answer, signal, (bytes) => {
      const value = parse(bytes);
      return { value, text: isObject(value) ? '' : textOfBytes(bytes) };
    });
    const object = this.#object(value, text);
    this.health.answered();
    return object;
  }

  async #failure(response: Answer, signal: AbortSignal): Promise<PolarError> {
    const message = messageIn(await this.#text(response, signal));
    const status = statusMeant(response.status, message);
    if (isFault(status)) this.health.failed();
    else this.health.answered();
    return this.#said(status, message, response.retryAfterMs);
  }

  #said(status: number, message: string, retryAfterMs?: number): PolarError {
    return failureOfStatus(this.name, status, this.#key?.without(status, message) ?? message, retryAfterMs);
  }

  async #text(answer: Answer, signal: AbortSignal): Promise<string> {
    return await this.#whole(answer, signal, textOfBytes);
  }

  async #whole<T>(answer: Answer, signal: AbortSignal, read: (bytes: Buffer) => T): Promise<T> {
    try {
      return await readWhole(answer, this.name, signal, read, this.#replyBytesMax);
    } catch (error) {
      // It does answer where that is too large.
      const isLarge = error instanceof PolarError && error.reason === 'ENGINE_ERROR';
      if (!signal.aborted && !isLarge) this.health.failed();
      throw error;
    }
  }

  async #firstModel(signal: AbortSignal): Promise<string> {
    const limit = withTimeout(ENGINE_PROBE_MS, signal);
    const list = await this.get('/v1/models', limit).catch((error) => {
      throw signal.aborted || !limit.aborted ? error : this.#silent();
    });
    const id = textOf(objectOf(arrayOf(list['data'])[0])['id']);
    if (id !== undefined) return id;
    throw new PolarError('ENGINE_ERROR', `the engine at ${this.name} serves no model`);
  }

  #silent(): PolarError {
    this.health.failed();
    return unavailable(this.name, new Silence(`no answer within ${ENGINE_PROBE_MS} ms`));
  }

  async #events(answer: Answer, to: Taker<JsonObject>): Promise<void> {
    const decoder = new EventDecoder();
    const reader = new ChunkReader(newReplyId);
    const tidier = new ChunkTidier(newCallId);
    let sizeBytes = 0;
    let done = false;
    const take = (bytes: Buffer): void => {
      sizeBytes += bytes.length;
      if (sizeBytes > this.#replyBytesMax) throw tooLarge(this.#replyBytesMax);
      for (const data of decoder.push(bytes)) {
        if (done) return;
        done = data === DONE;
        if (done) answer.finish(TAIL_MS);
        else {
          const chunk = this.#chunk(reader.read(data), data);
          tidier.tidy(chunk);
          to.take(chunk);
        }
      }
    };
    await answer.read({ take, flush: () => to.flush() });
    if (!done && !decoder.end().includes(DONE)) throw this.#cut(new Error('no [DONE]'));
  }

  #chunk(value: JsonValue | undefined, data: string): JsonObject {
    const chunk = this.#object(value, data);
    this.#refuseError(chunk, 500);
    return chunk;
  }

  /** What says in place of a reply, or amid it, that there is none. `otherwise` stands for the status that it does not tell. */
  #refuseError(said: JsonObject, otherwise: number): void {
    const error = said['error'] ?? (said['object'] === 'error' ? said : null);
    if (error === null) return;
    const { code, type } = objectOf(error);
    const refused = typeof type === 'string' && REFUSED_TYPES.includes(type);
    const status = typeof code === 'number' ? code : refused ? 400 : otherwise;
    throw this.#said(status, messageIn(JSON.stringify({ error })));
  }

  /** `text` is where it was read. */
  #object(value: JsonValue | undefined, text: string): JsonObject {
    if (isObject(value)) return value;
    this.health.failed();
    throw notJson(this.name, text);
  }

  #cut(error: unknown): PolarError {
    this.health.failed();
    const why = error instanceof Error ? error.message : String(error);
    const message = `the engine at ${this.name} broke off a stream (${why})`;
    return new PolarError('ENGINE_STREAM_CUT', message, { cause: error });
  }
}
