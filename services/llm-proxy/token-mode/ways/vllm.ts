// vLLM: its own rendering tells the sampling parameters, /inference/v1/generate takes ids, its own derendering makes
// the reply of a chat. Needs --enable-scale-out. Ids come whole, so that streams are made from the reply.
import { abortable } from '../../../common/clock.ts';
import { PolarError } from '../../../common/errors.ts';
import { Kept } from '../../../common/kept.ts';
import { RENDER_MS, RENDERINGS_KEPT_MAX } from '../../../common/limits.ts';
import { asInChat, toDerender } from '../../domain/derendering.ts';
import { arrayOf, countOf, idsOf, isObject, type JsonObject, objectOf } from '../../domain/json.ts';
import {
  addLogprobs,
  addSampled,
  sampledOf,
  type Tokens,
  weightSpansOf,
  weightVersionOf,
} from '../../domain/tokens.ts';
import { askExperts } from '../../engines/ask-experts.ts';
import type { Engine } from '../../engines/engine.ts';
import { Silence, unavailable } from '../../engines/http.ts';
import { retriedBehind } from '../../engines/retry.ts';
import type { TokenRequest, TokenWay } from '../../engines/token-call.ts';
import { tellExperts } from '../../engines/vllm.ts';
import { withIds } from './body.ts';

/** What a request's fields come to. */
interface Params {
  readonly sampling: JsonObject;
  /** How the engine tells where the thinking ends, as grammars hold only behind it; empty: it has no parser for that. */
  readonly reasoning: JsonObject;
  /** Ids that prompt and reply may have together. */
  readonly windowTokens: number;
  /** Of the first two. */
  readonly chars: number;
}

const RENDER = '/v1/chat/completions/render';
const DERENDER = '/v1/chat/completions/derender';
const GENERATE = '/inference/v1/generate';
/** Parameters that are kept for further requests, in characters: stop strings and formats may be megabytes. */
const PARAMS_CHARS_MAX = 16 * 1024;
/** Ids of the prompt's end, from which derendering tells whether a blank stands before the first word. */
const SEED_IDS = 8;

export class VllmWay implements TokenWay {
  readonly #params = new Kept<Promise<Params>>(RENDERINGS_KEPT_MAX);
  readonly #renderMs: number;

  /** `renderMs`: for one rendering. */
  constructor(renderMs = RENDER_MS) {
    this.#renderMs = renderMs;
  }

  async whole(request: TokenRequest, signal: AbortSignal): Promise<JsonObject> {
    const { engine, model, sent, tokens, prompt } = request;
    const { sampling, reasoning } = await this.#paramsOf(request, signal);
    const asked = askExperts(engine, sent, tokens, prompt);
    const body = { model, sampling_params: { ...sampling, ...asked }, ...reasoning };
    const generated = await engine.ask(GENERATE, withIds('token_ids', prompt, body), signal);
    readGenerated(generated, tokens);
    const choices = arrayOf(generated['choices']).map(objectOf);
    const reply = await derender(request, generated, choices, signal);
    const made = new Map(arrayOf(reply['choices']).map((one) => [objectOf(one)['index'], objectOf(one)]));
    return {
      ...reply,
      model,
      choices: choices.map((choice) => asInChat(choice, made.get(choice['index']), sent)),
      // Derendering knows no prompt, so that its usage lacks it.
      usage: generated['usage'] ?? null,
    };
  }

  /** Throws ENGINE_REFUSED where the prompt leaves no room for a reply. */
  async #paramsOf(
    request: TokenRequest,
    signal: AbortSignal,
  ): Promise<Pick<Params, 'sampling' | 'reasoning'>> {
    const { seed, ...chat } = chatOf(request);
    const { engine, model, prompt } = request;
    const key = JSON.stringify([engine.name, chat]);
    const params = this.#params.get(key, async () => paramsIn(await this.#rendered(engine, chat)));
    const found = await abortable(params, signal);
    if (found.chars > PARAMS_CHARS_MAX) this.#params.delete(key);
    const { sampling, reasoning, windowTokens } = found;
    const more: JsonObject = seed === undefined ? {} : { seed };
    const most = chat['max_completion_tokens'] ?? chat['max_tokens'];
    // The rendering leaves out what is vLLM's own default, 16, which generating takes for no limit.
    if (typeof most === 'number') return { sampling: { max_tokens: most, ...sampling, ...more }, reasoning };
    const left = windowTokens - prompt.length;
    if (left > 0) return { sampling: { ...sampling, ...more, max_tokens: left }, reasoning };
    const message = `the prompt of ${prompt.length} tokens is longer than the model's context window at ${model}`;
    throw new PolarError('ENGINE_REFUSED', message);
  }

  /** Not for as long as the call: others may wait for the same. */
  async #rendered(engine: Engine, chat: JsonObject): Promise<JsonObject> {
    const limit = AbortSignal.timeout(this.#renderMs);
    try {
      return await engine.ask(RENDER, chat, limit);
    } catch (error) {
      if (!limit.aborted) throw error;
      throw unavailable(engine.name, new Silence(`no rendering within ${this.#renderMs} ms`));
    }
  }
}

function paramsIn(rendered: JsonObject): Params {
  const { reasoning_ended: ended, reasoning_parser_kwargs: kwargs } = rendered;
  const sampling = objectOf(rendered['sampling_params']);
  const reasoning: JsonObject = {};
  // That it has not ended is said of the rendered prompt alone: unsaid, the engine looks at the one that it is given.
  if (ended === true) reasoning['reasoning_ended'] = true;
  if (isObject(kwargs)) reasoning['reasoning_parser_kwargs'] = kwargs;
  const ids = arrayOf(rendered['token_ids']).length;
  const { length: chars } = JSON.stringify([sampling, reasoning]);
  return { sampling, reasoning, windowTokens: countOf(sampling['max_tokens']) + ids, chars };
}

/** The chat of what was generated; of what the engine interrupted, which nobody is shown, its head. */
async function derender(
  request: TokenRequest,
  generated: JsonObject,
  choices: readonly JsonObject[],
  signal: AbortSignal,
): Promise<JsonObject> {
  const { engine, model, sent, prompt } = request;
  const told = toDerender(choices, sent);
  if (told.length === 0 || choices.some((choice) => choice['finish_reason'] === 'abort')) {
    return { id: generated['request_id'] ?? null, created: generated['created'] ?? null };
  }
  const body: JsonObject = {
    model,
    generate_response: { ...generated, choices: told },
    prompt_token_ids: [...prompt.tail.slice(-SEED_IDS)],
    chat_request: chatOf(request),
  };
  const reply = await retriedBehind(signal, () => engine.ask(DERENDER, body, signal));
  if (arrayOf(reply['choices']).length === told.length) return reply;
  throw new PolarError(
    'ENGINE_ERROR',
    `the engine at ${engine.name} derendered other choices than it had made`,
  );
}

/** The request of text mode without the conversation: what parsers and sampling need of it. */
function chatOf({ sent }: TokenRequest): JsonObject {
  const { stream: _, stream_options: __, ...chat } = sent;
  return { ...chat, messages: [{ role: 'user', content: 'x' }] };
}

function readGenerated(generated: JsonObject, into: Tokens): void {
  const choices = arrayOf(generated['choices']).map(objectOf);
  for (const choice of choices) {
    const sampled = sampledOf(into, countOf(choice['index']));
    const ids = idsOf(choice['token_ids']);
    if (ids !== undefined) addSampled(sampled, ids);
    addLogprobs(sampled, choice);
    tellExperts(into, sampled, choice);
    // An update may come at another token of each.
    sampled.weights = { weightVersion: weightVersionOf(choice) ?? '', spans: weightSpansOf(choice) };
  }
}
