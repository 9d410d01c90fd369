// One try of a model call at one engine.
import type { Sampling } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { PolarError } from '../../common/errors.ts';
import { wantsArgumentObjects, withArgumentObjects } from '../domain/argument-objects.ts';
import type { Drift } from '../domain/drift.ts';
import { type ChatOrder, engineBody } from '../domain/engine-body.ts';
import { engineText } from '../domain/engine-text.ts';
import { arrayOf, type JsonObject } from '../domain/json.ts';
import type { BodySource } from '../domain/known-body.ts';
import { overrideSampling } from '../domain/sampling.ts';
import { noTokens, type Tokens } from '../domain/tokens.ts';
import { unknownFields, withoutFields } from '../domain/unknown-fields.ts';
import { withinWindow } from '../domain/window-limit.ts';
import { askExperts } from './ask-experts.ts';
import type { Engine } from './engine.ts';
import type { Taker } from './taker.ts';

/** A model call as the proxy orders it, whichever engine gets it. */
export interface CallOrder {
  readonly sessionId: string;
  readonly attempt: number;
  /** Alias of the frozen model pool that it goes to; empty: the policy. */
  readonly pool: string;
  readonly chat: ChatOrder;
  /** Where its messages lie in the request of the harness, to be passed on from there. */
  readonly source?: BodySource | undefined;
  /** The task's; wins over the harness's. */
  readonly sampling: Sampling | undefined;
  /** Puts a call of token mode in the place of one of text mode, where the node wants it. */
  readonly inTokenMode?: (call: TextCall) => EngineCall;
}

/** A try: what is sent, and what the engine tells at token level while it answers. */
export interface EngineCall {
  readonly engine: Engine;
  /** Model as called. */
  readonly model: string;
  /** The request as the engine gets it, but for what is asked of its routed experts. */
  readonly sent: JsonObject;
  /** Filled while `whole` or `stream` run. */
  readonly tokens: Tokens;
  /** text: the engine makes the prompt of the messages; token: it is given the ids. Final when something is answered. */
  readonly mode: 'text' | 'token';
  /** Why it is not token mode where the node wants that and the conversation goes on from an earlier call. */
  readonly drift: Drift;
  /** The whole `chat.completion`. Throws ENGINE_UNAVAILABLE, ENGINE_ERROR, ENGINE_REFUSED, the signal's reason. */
  whole(signal: AbortSignal): Promise<JsonObject>;
  /** Gives each `chat.completion.chunk` to `to`. Throws as `whole`, ENGINE_STREAM_CUT, and what `to` throws. */
  stream(to: Taker<JsonObject>, signal: AbortSignal): Promise<void>;
}

/** Fields that an engine has said it does not know, by model: they are not sent to that again. */
const unknownTo = new WeakMap<Engine, Map<string, ReadonlySet<string>>>();

/** The engine makes the prompt of the messages and tells its ids. */
export class TextCall implements EngineCall {
  readonly engine: Engine;
  readonly model: string;
  readonly tokens = noTokens();
  readonly mode = 'text';
  readonly drift = '';
  /** The harness is shown the logprobs. */
  readonly showsLogprobs: boolean;
  readonly #source: BodySource | undefined;
  readonly #sampling: Sampling | undefined;
  #sent: JsonObject;

  constructor(engine: Engine, model: string, { chat, sampling, source }: CallOrder) {
    this.engine = engine;
    this.model = model;
    this.showsLogprobs = chat.showsLogprobs === true;
    this.#source = source;
    const body = engineBody(chat, model, engine.adapter.fields(chat.stream), sampling);
    this.#sampling = sampling;
    const fields = unknownTo.get(engine)?.get(model);
    this.#sent = fields === undefined ? body : withoutFields(body, this.#spared(fields));
  }

  get sent(): JsonObject {
    return this.#sent;
  }

  async whole(signal: AbortSignal): Promise<JsonObject> {
    const { engine, tokens } = this;
    const reply = await this.asked(() => engine.whole(this.#body(), signal, this.showsLogprobs));
    engine.adapter.readReply(reply, tokens);
    const { completeReply } = engine.adapter;
    if (completeReply === undefined) return reply;
    await completeReply(reply, tokens, (path, body) => engine.ask(path, body, signal), this.sent);
    return reply;
  }

  async stream(to: Taker<JsonObject>, signal: AbortSignal): Promise<void> {
    const { engine, tokens } = this;
    await this.asked(() => engine.stream(this.#body(), readFirst(engine, tokens, to), signal));
  }

  /** Asks again without what the engine says that it does not know or take: it has told nothing else then. */
  async asked<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        const refused = error instanceof PolarError && error.reason === 'ENGINE_REFUSED';
        if (!refused || !this.#asksOtherwise(error.message)) throw error;
      }
    }
  }

  #asksOtherwise(answer: string): boolean {
    return this.#asksLess(answer) || this.#saysOtherwise(answer) || this.#learns(answer);
  }

  #asksLess(answer: string): boolean {
    const less = withinWindow(this.#sent, answer);
    this.#sent = less ?? this.#sent;
    return less !== undefined;
  }

  #saysOtherwise(answer: string): boolean {
    if (!wantsArgumentObjects(answer)) return false;
    const messages = withArgumentObjects(arrayOf(this.#sent['messages']));
    if (messages !== undefined) this.#sent = { ...this.#sent, messages };
    return messages !== undefined;
  }

  #learns(answer: string): boolean {
    const { engine, sent } = this;
    if (engine.adapter.knowsLess !== true) return false;
    const fields = this.#spared(new Set(unknownFields(sent, answer)));
    if (fields.size === 0) return false;
    const byModel = unknownTo.get(engine) ?? new Map();
    const known = new Set([...(byModel.get(this.model) ?? []), ...fields]);
    unknownTo.set(engine, byModel.set(this.model, known));
    this.#sent = withoutFields(sent, fields);
    return true;
  }

  /** Not what the task says of the sampling: the reply would not be the one that it asks for. A limit has another name. */
  #spared(fields: ReadonlySet<string>): ReadonlySet<string> {
    const ordered: JsonObject = {};
    overrideSampling(ordered, this.#sampling);
    return new Set([...fields].filter((field) => field === 'max_tokens' || !Object.hasOwn(ordered, field)));
  }

  #body(): Buffer[] {
    const { engine, sent, tokens } = this;
    const asked = askExperts(engine, sent, tokens);
    const said = engine.adapter.inItsWords?.(sent) ?? sent;
    return engineText({ ...said, ...asked }, this.#source);
  }
}

/** What a chunk tells at token level is known before `to` gets it. */
export const readFirst = ({ adapter }: Engine, tokens: Tokens, to: Taker<JsonObject>): Taker<JsonObject> => ({
  take: (chunk) => {
    adapter.readChunk(chunk, tokens);
    to.take(chunk);
  },
  flush: () => to.flush(),
});
