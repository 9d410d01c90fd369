// vLLM: prompt_token_ids at the top, token_ids in each choice and each chunk.
import { RequestFault } from '../faults.ts';
import { npyExperts } from '../reply/experts.ts';
import type { Message } from '../reply/generation.ts';
import {
  type Body,
  type ChatCall,
  type Choice,
  callsBody,
  chunk,
  type Dialect,
  deltaBody,
  deltaOf,
  idsOf,
  logprobsOf,
  usageOf,
  wantsUsage,
} from './dialect.ts';

const FINGERPRINT = 'vllm-scripted';

export const vllm: Dialect = {
  name: 'vllm',

  check(request, model) {
    if (request.model == null || request.model === model) return;
    throw new RequestFault(404, `The model \`${request.model}\` does not exist.`);
  },

  overflow(promptTokens, tokensMax, contextTokens) {
    if (promptTokens >= contextTokens) {
      return (
        `This model's maximum context length is ${contextTokens} tokens. However, your prompt contains at least ` +
        `${contextTokens + 1} input tokens, which exceeds this limit even without any output tokens. Please reduce ` +
        `the length of the input prompt. (parameter=input_tokens, value=${contextTokens + 1})`
      );
    }
    const asked = tokensMax === undefined ? '' : ` and ${tokensMax} in the completion`;
    return (
      `This model's maximum context length is ${contextTokens} tokens. However, you requested ` +
      `${promptTokens + (tokensMax ?? 0)} tokens (${promptTokens} in the messages${asked}). ` +
      'Please reduce the length of the messages or completion.'
    );
  },

  error(fault) {
    return { error: { message: fault.message, type: fault.type, param: null, code: fault.status } };
  },

  errorEvent(fault) {
    return vllm.error(fault);
  },

  model(name, contextTokens, created) {
    return {
      id: name,
      object: 'model',
      created,
      owned_by: 'vllm',
      root: name,
      parent: null,
      max_model_len: contextTokens,
    };
  },

  reply(call, choices) {
    return {
      id: call.id,
      object: 'chat.completion',
      created: call.created,
      model: call.model,
      choices: choices.map((choice) => choiceBody(call, choice)),
      service_tier: null,
      system_fingerprint: FINGERPRINT,
      usage: usageOf(call, choices),
      prompt_logprobs: null,
      prompt_token_ids: idsAsked(call) ? call.promptIds : null,
      prompt_text: null,
      kv_transfer_params: null,
      metrics: null,
    };
  },

  begin(call, choice) {
    const delta = { role: 'assistant', content: '' };
    const first = { index: choice.index, delta, logprobs: null, finish_reason: null };
    return [chunk(call, [first], idsAsked(call) ? { prompt_token_ids: call.promptIds } : {})];
  },

  tokens(call, choice, from, to) {
    const delta = deltaBody(choice, deltaOf(choice, from, to), 'reasoning');
    const last = to === choice.generation.steps.length;
    // Without ids to carry, a chunk that says nothing is not sent.
    if (Object.keys(delta).length === 0 && !last && !idsAsked(call)) return [];
    const body = {
      index: choice.index,
      delta,
      logprobs: logprobsOf(call, choice, from, to),
      ...ending(choice, last),
    };
    const ids = idsOf(choice).slice(from, to);
    return [chunk(call, [idsAsked(call) ? { ...body, token_ids: ids } : body])];
  },

  close(call, choices) {
    if (!wantsUsage(call)) return [];
    return [chunk(call, [], { usage: usageOf(call, choices), system_fingerprint: FINGERPRINT })];
  },
};

const idsAsked = (call: ChatCall): boolean => call.request.return_token_ids === true && call.givesTokenIds;

function ending({ generation }: Choice, last: boolean): Body {
  if (!last) return { finish_reason: null };
  const stopped = typeof generation.matched === 'string' ? generation.matched : null;
  return { finish_reason: generation.finish, stop_reason: stopped };
}

/** Where the model has some, in all whole replies, asked for or not. */
export function expertsOf({ request, promptIds, experts }: ChatCall, choice: Choice): string | null {
  if (experts.layers === 0) return null;
  return npyExperts([...promptIds, ...idsOf(choice)], request.routed_experts_prompt_start ?? 0, experts);
}

function choiceBody(call: ChatCall, choice: Choice): Body {
  const { message, steps } = choice.generation;
  const calls = callsBody(choice).map(({ index: _, ...one }) => one);
  return {
    index: choice.index,
    message: messageBody(message, calls),
    logprobs: logprobsOf(call, choice, 0, steps.length),
    ...ending(choice, true),
    token_ids: idsAsked(call) ? idsOf(choice) : null,
    routed_experts: expertsOf(call, choice),
  };
}

export const messageBody = ({ content, reasoning }: Message, calls: readonly Body[]): Body => ({
  role: 'assistant',
  content: content === '' && calls.length > 0 ? null : content,
  refusal: null,
  annotations: null,
  audio: null,
  function_call: null,
  tool_calls: calls,
  reasoning: reasoning === '' ? null : reasoning,
});
