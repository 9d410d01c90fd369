// A try in token mode: the engine is given the ids of the prompt, where there is a bridge to them; else the messages.
import type { Drift } from '../domain/drift.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Continuation, Tokens } from '../domain/tokens.ts';
import type { Engine } from './engine.ts';
import type { EngineCall, TextCall } from './engine-call.ts';
import { madeStream, type Taker } from './taker.ts';

/** The ids of a prompt. */
export interface TokenPrompt extends Continuation {
  /** Ids in all. */
  readonly length: number;
  /** All of them as the members of a JSON array, in pieces. */
  readonly text: readonly Buffer[];
  /** Tool calls in its messages. */
  readonly calls: number;
}

/** A call that is given ids. */
export interface TokenRequest {
  readonly engine: Engine;
  readonly model: string;
  /** The request in text mode. */
  readonly sent: JsonObject;
  readonly showsLogprobs: boolean;
  readonly tokens: Tokens;
  readonly prompt: TokenPrompt;
}

/** How a kind of engine takes ids, and how its answer becomes that of a chat. Throws as `EngineCall`. */
export interface TokenWay {
  /** Whether all that the request in text mode says can be said beside ids; unset: it always can. */
  takes?(sent: JsonObject): boolean;
  whole(request: TokenRequest, signal: AbortSignal): Promise<JsonObject>;
  /** Unset: streams are made from whole replies. */
  stream?(request: TokenRequest, to: Taker<JsonObject>, signal: AbortSignal): Promise<void>;
}

/** The ids to send; a reason where there are none. */
export type FindPrompt = (signal: AbortSignal) => Promise<TokenPrompt | Drift>;

export class TokenCall implements EngineCall {
  readonly #text: TextCall;
  readonly #way: TokenWay;
  readonly #findPrompt: FindPrompt;
  #prompt: TokenPrompt | undefined;
  #drift: Drift = '';

  constructor(text: TextCall, way: TokenWay, findPrompt: FindPrompt) {
    this.#text = text;
    this.#way = way;
    this.#findPrompt = findPrompt;
  }

  get engine(): Engine {
    return this.#text.engine;
  }

  get model(): string {
    return this.#text.model;
  }

  get sent(): JsonObject {
    return this.#text.sent;
  }

  get tokens(): Tokens {
    return this.#text.tokens;
  }

  get mode(): 'text' | 'token' {
    return this.#prompt === undefined ? 'text' : 'token';
  }

  get drift(): Drift {
    return this.#drift;
  }

  async whole(signal: AbortSignal): Promise<JsonObject> {
    const prompt = await this.#find(signal);
    if (prompt === undefined) return await this.#text.whole(signal);
    return await this.#text.asked(() => this.#way.whole(this.#request(prompt), signal));
  }

  async stream(to: Taker<JsonObject>, signal: AbortSignal): Promise<void> {
    const prompt = await this.#find(signal);
    if (prompt === undefined) await this.#text.stream(to, signal);
    else await this.#text.asked(() => this.#streamed(prompt, to, signal));
  }

  async #streamed(prompt: TokenPrompt, to: Taker<JsonObject>, signal: AbortSignal): Promise<void> {
    const [way, request] = [this.#way, this.#request(prompt)];
    if (way.stream !== undefined) await way.stream(request, to, signal);
    else await madeStream(await way.whole(request, signal), to);
  }

  async #find(signal: AbortSignal): Promise<TokenPrompt | undefined> {
    const found = await this.#findPrompt(signal);
    if (typeof found === 'string') {
      this.#drift = found;
      return undefined;
    }
    this.#prompt = found;
    this.#text.tokens.given = found;
    return found;
  }

  #request(prompt: TokenPrompt): TokenRequest {
    const { engine, model, sent, showsLogprobs, tokens } = this.#text;
    return { engine, model, sent, showsLogprobs, tokens, prompt };
  }
}
