// vLLM's calls with token ids: render a chat to ids, generate from ids.
import type { Engine } from '../engine.ts';
import { readPrompt } from '../prompt/reading.ts';
import { type ChatRequest, type GenerateRequest, stopsOf, tokensMaxOf } from '../request.ts';
import { type Body, type ChatCall, type Choice, idsOf, usageOf } from './dialect.ts';
import { expertsOf } from './vllm.ts';

/** A ready body for `generate`, as far as it has a meaning here. */
export function rendered({ options, prompts }: Engine, request: ChatRequest): Body {
  const ids = prompts.ids(request, options.switches);
  const { n, seed, temperature } = request;
  return {
    request_id: 'chatcmpl-rendered',
    token_ids: ids,
    sampling_params: {
      ...(n == null ? {} : { n }),
      ...(seed == null ? {} : { seed }),
      temperature: temperature ?? 1,
      stop: stopsOf(request),
      max_tokens: tokensMaxOf(request) ?? options.switches.context_tokens - ids.length,
      logprobs: request.logprobs === true ? (request.top_logprobs ?? 0) : null,
    },
    model: options.modelName,
    output_mode: 'tokens',
    stream: false,
  };
}

/** The chat that the ids are the prompt of. */
export function chatOf(
  { model }: Engine,
  { token_ids: ids, sampling_params, ...rest }: GenerateRequest,
): ChatRequest {
  const { messages, tools } = readPrompt(model.tokenizer.decode(ids));
  const { n, seed, max_tokens, stop, logprobs, routed_experts_prompt_start } = sampling_params;
  return {
    ...rest,
    messages,
    tools,
    n,
    seed,
    max_tokens: max_tokens ?? 16,
    stop,
    logprobs: logprobs != null,
    input_ids: ids,
    routed_experts_prompt_start,
  };
}

export function generated(call: ChatCall, choices: readonly Choice[]): Body {
  return {
    request_id: call.id,
    model: call.model,
    created: call.created,
    usage: usageOf(call, choices),
    prompt_logprobs: null,
    prompt_token_ids: null,
    output_mode: 'tokens',
    choices: choices.map((choice) => generatedChoice(call, choice)),
  };
}

function generatedChoice(call: ChatCall, choice: Choice): Body {
  const { request, givesLogprobs } = call;
  const { finish, matched } = choice.generation;
  const content = idsOf(choice).map((id, i) => ({ token_id: id, logprob: choice.logprobs.of(i, id) }));
  return {
    index: choice.index,
    // Calls are not known before the ids are derendered.
    finish_reason: finish === 'length' ? 'length' : 'stop',
    stop_reason: typeof matched === 'string' ? matched : null,
    token_ids: idsOf(choice),
    weight_versions: choice.versions,
    routed_experts: expertsOf(call, choice),
    logprobs: request.logprobs === true && givesLogprobs ? { content } : null,
  };
}
