// One try of a model call at one engine.
import type { Sampling } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { type ChatOrder, engineBody } from '../domain/engine-body.ts';
import type { JsonObject } from '../domain/json.ts';
import { noTokens, type Tokens } from '../domain/tokens.ts';
import type { Engine } from './engine.ts';

/** A model call as the proxy orders it, whichever engine gets it. */
export interface CallOrder {
  readonly sessionId: string;
  readonly chat: ChatOrder;
  /** The task's; wins over the harness's. */
  readonly sampling: Sampling | undefined;
}

/** A try: what is sent, and what the engine tells at token level while it answers. */
export interface EngineCall {
  readonly engine: Engine;
  /** Model as called. */
  readonly model: string;
  /** The request as the engine gets it. */
  readonly sent: JsonObject;
  /** Filled while `whole` or `chunks` run. */
  readonly tokens: Tokens;
  /** The whole `chat.completion`. Throws ENGINE_UNAVAILABLE, ENGINE_ERROR, ENGINE_REFUSED, the signal's reason. */
  whole(signal: AbortSignal): Promise<JsonObject>;
  /** Each `chat.completion.chunk`. Throws as `whole`, and ENGINE_STREAM_CUT. */
  chunks(signal: AbortSignal): AsyncGenerator<JsonObject, void>;
}

/** The engine makes the prompt of the messages and tells its ids. */
export class TextCall implements EngineCall {
  readonly engine: Engine;
  readonly model: string;
  readonly sent: JsonObject;
  readonly tokens = noTokens();

  constructor(engine: Engine, model: string, { chat, sampling }: CallOrder) {
    this.engine = engine;
    this.model = model;
    this.sent = engineBody(chat, model, engine.adapter.fields(chat.stream), sampling);
  }

  async whole(signal: AbortSignal): Promise<JsonObject> {
    const reply = await this.engine.whole(this.sent, signal);
    this.engine.adapter.readReply(reply, this.tokens);
    return reply;
  }

  async *chunks(signal: AbortSignal): AsyncGenerator<JsonObject, void> {
    for await (const chunk of this.engine.chunks(this.sent, signal)) {
      this.engine.adapter.readChunk(chunk, this.tokens);
      yield chunk;
    }
  }
}
