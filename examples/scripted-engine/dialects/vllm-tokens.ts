// vLLM's calls with token ids: render a chat to ids, generate from ids, derender what was generated to a chat's reply.
import type { PlannedChoice } from '../choice.ts';
import type { Engine } from '../engine.ts';
import { readPrompt } from '../prompt/reading.ts';
import { NO_EXPERTS } from '../reply/experts.ts';
import { parsed } from '../reply/generation.ts';
import type { TokenLogprob } from '../reply/logprobs.ts';
import {
  type ChatRequest,
  type DerenderRequest,
  type GenerateRequest,
  stopsOf,
  tokensMaxOf,
  toolsOf,
} from '../request.ts';
import { type Body, type ChatCall, type Choice, idsOf, usageOf } from './dialect.ts';
import { expertsOf, vllm } from './vllm.ts';

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

/** The reply of a chat; its usage knows no prompt. */
export function derendered(
  engine: Engine,
  { generate_response: from, chat_request: request }: DerenderRequest,
): Body {
  const { model, options } = engine;
  const call: ChatCall = {
    id: from.request_id,
    created: engine.created,
    model: from.model,
    request: { ...request, return_token_ids: true },
    promptIds: [],
    tokenizer: model.tokenizer,
    parsesTools: toolsOf(request).length > 0,
    givesTokenIds: options.switches.token_ids,
    givesLogprobs: options.switches.logprobs,
    promptTokensTold: 0,
    experts: NO_EXPERTS,
  };
  return vllm.reply(
    call,
    from.choices.map((choice) => choiceOf(engine, request, choice)),
  );
}

function choiceOf(
  { model, options }: Engine,
  request: ChatRequest,
  { index, token_ids: ids, logprobs }: DerenderRequest['generate_response']['choices'][number],
): PlannedChoice {
  const { tool_format: format, keep_content_newline: keepContentNewline } = options.switches;
  const generation = parsed(model.tokenizer, ids, stopsOf(request), {
    format,
    keepContentNewline,
    tools: toolsOf(request),
  });
  const told = (position: number): number => logprobs?.content[position]?.logprob ?? 0;
  return {
    index,
    generation,
    logprobs: { of: told, top: (position, id): TokenLogprob[] => [{ id, logprob: told(position) }] },
    callIds: generation.message.calls.map((_, i) => `chatcmpl-tool-${index}-${i}-${ids.length}`),
    versions: [],
  };
}
