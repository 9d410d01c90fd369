// vLLM: its own rendering tells the sampling parameters, /inference/v1/generate takes ids, its own derendering makes
// the reply of a chat. Needs --enable-scale-out. Ids come whole, so that streams are made from the reply.
import { abortable } from '../../../common/clock.ts';
import { PolarError } from '../../../common/errors.ts';
import { Kept } from '../../../common/kept.ts';
import { RENDER_MS, RENDERINGS_KEPT_MAX } from '../../../common/limits.ts';
import { arrayOf, countOf, idsOf, type JsonObject, objectOf } from '../../domain/json.ts';
import {
  addLogprobs,
  addSampled,
  sampledOf,
  type Tokens,
  weightSpansOf,
  weightVersionOf,
} from '../../domain/tokens.ts';
import { askExperts } from '../../engines/ask-experts.ts';
import type { TokenRequest, TokenWay } from '../../engines/token-call.ts';
import { tellExperts } from '../../engines/vllm.ts';
import { withIds } from './body.ts';

/** What a request's fields come to. */
interface Params {
  readonly sampling: JsonObject;
  /** Ids that prompt and reply may have together. */
  readonly windowTokens: number;
}

const RENDER = '/v1/chat/completions/render';
const DERENDER = '/v1/chat/completions/derender';
const GENERATE = '/inference/v1/generate';

export class VllmWay implements TokenWay {
  readonly #params = new Kept<Promise<Params>>(RENDERINGS_KEPT_MAX);

  async whole(request: TokenRequest, signal: AbortSignal): Promise<JsonObject> {
    const { engine, model, sent, tokens, prompt } = request;
    const sampling = await this.#samplingOf(request, signal);
    const asked = askExperts(engine, sent, tokens, prompt);
    const generated = await engine.ask(
      GENERATE,
      withIds('token_ids', prompt, { model, sampling_params: { ...sampling, ...asked } }),
      signal,
    );
    readGenerated(generated, tokens);
    const chat = chatOf(request);
    const reply = await engine.ask(
      DERENDER,
      { model, generate_response: generated, chat_request: chat },
      signal,
    );
    // Derendering knows no prompt, so that its usage lacks it.
    return { ...reply, model, usage: generated['usage'] ?? null };
  }

  /** Throws ENGINE_REFUSED where the prompt leaves no room for a reply. */
  async #samplingOf(request: TokenRequest, signal: AbortSignal): Promise<JsonObject> {
    const { seed, ...chat } = chatOf(request);
    const { engine, model, prompt } = request;
    const key = JSON.stringify([engine.name, chat]);
    const params = this.#params.get(key, async () => {
      // Not the signal of the call: others may wait for the same.
      const rendered = await engine.ask(RENDER, chat, AbortSignal.timeout(RENDER_MS));
      const sampling = objectOf(rendered['sampling_params']);
      const ids = arrayOf(rendered['token_ids']).length;
      return { sampling, windowTokens: countOf(sampling['max_tokens']) + ids };
    });
    const { sampling, windowTokens } = await abortable(params, signal);
    const more: JsonObject = seed === undefined ? {} : { seed };
    const most = chat['max_completion_tokens'] ?? chat['max_tokens'];
    // The rendering leaves out what is vLLM's own default, 16, which generating takes for no limit.
    if (typeof most === 'number') return { max_tokens: most, ...sampling, ...more };
    const left = windowTokens - prompt.length;
    if (left > 0) return { ...sampling, ...more, max_tokens: left };
    const message = `the prompt of ${prompt.length} tokens is longer than the model's context window at ${model}`;
    throw new PolarError('ENGINE_REFUSED', message);
  }
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
  }
  into.weightVersion = weightVersionOf(choices[0]) ?? '';
  into.spans = weightSpansOf(choices[0]);
}
