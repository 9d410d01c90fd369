// SGLang: ids in each choice of a whole reply, in `sglext` of a stream's last chunk; weight versions in `metadata`; routed
// experts where the ids are.
import { RequestFault } from '../faults.ts';
import { routedExperts } from '../reply/experts.ts';
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

const NOT_STREAMED = ['return_prompt_token_ids', 'return_token_ids', 'return_meta_info'] as const;

export const sglang: Dialect = {
  name: 'sglang',

  check(request) {
    if (request.stream !== true) return;
    const refused = NOT_STREAMED.find((field) => request[field] === true);
    if (refused === undefined) return;
    const way = `Please set stream=false when using ${refused}=true.`;
    throw new RequestFault(400, `${refused} is not supported with streaming. ${way}`);
  },

  overflow(promptTokens, tokensMax, contextTokens) {
    if (promptTokens >= contextTokens || tokensMax === undefined) {
      return `The input (${promptTokens} tokens) is longer than the model's context length (${contextTokens} tokens).`;
    }
    return (
      `Requested token count exceeds the model's maximum context length of ${contextTokens} tokens. You requested a ` +
      `total of ${promptTokens + tokensMax} tokens: ${promptTokens} tokens from the input messages and ${tokensMax} ` +
      'tokens for the completion.'
    );
  },

  error(fault) {
    return { object: 'error', message: fault.message, type: fault.type, param: null, code: fault.status };
  },

  errorEvent(fault) {
    return { error: sglang.error(fault) };
  },

  model(name, contextTokens, created) {
    return {
      id: name,
      object: 'model',
      created,
      owned_by: 'sglang',
      root: name,
      parent: null,
      max_model_len: contextTokens,
    };
  },

  reply(call, choices) {
    const spans = choices[0]?.versions ?? [];
    return {
      id: call.id,
      object: 'chat.completion',
      created: call.created,
      model: call.model,
      choices: choices.map((choice) => choiceBody(call, choice)),
      usage: { ...usageOf(call, choices), reasoning_tokens: 0 },
      metadata: { weight_version: spans.at(-1)?.version, weight_versions: spans },
      ...sglext(call, choices),
    };
  },

  begin(call, choice) {
    return [choiceChunk(call, choice, { role: 'assistant', content: '' })];
  },

  tokens(call, choice, from, to) {
    const delta = deltaOf(choice, from, to);
    let logprobs = logprobsOf(call, choice, from, to);
    const chunks: Body[] = [];
    for (const part of partsOf(deltaBody(choice, delta, 'reasoning_content'))) {
      // Chunks that come out of the tool-call parser have none: they follow in a chunk of their own.
      const carries = !call.parsesTools || 'reasoning_content' in part;
      chunks.push(choiceChunk(call, choice, part, carries ? logprobs : null));
      if (carries) logprobs = null;
    }
    if (logprobs !== null) chunks.push(choiceChunk(call, choice, {}, logprobs));
    return chunks;
  },

  close(call, choices) {
    const ends = choices.map((choice) => choiceChunk(call, choice, {}, null, ending(choice)));
    const ids = sglext(call, choices);
    if (Object.keys(ids).length > 0) ends.push(chunk(call, [], ids));
    if (wantsUsage(call)) ends.push(chunk(call, [], { usage: usageOf(call, choices) }));
    return ends;
  },
};

function choiceChunk(
  call: ChatCall,
  { index }: Choice,
  delta: Body,
  logprobs: Body | null = null,
  end: Body = { finish_reason: null, matched_stop: null },
): Body {
  return chunk(call, [{ index, delta, logprobs, ...end }]);
}

/** Thinking, text and tool calls go in chunks of their own. */
function partsOf(delta: Body): Body[] {
  return Object.entries(delta).map(([field, value]) => ({ [field]: value }));
}

function ending({ generation }: Choice): Body {
  return { finish_reason: generation.finish, matched_stop: generation.matched };
}

function choiceBody(call: ChatCall, choice: Choice): Body {
  const { request, givesTokenIds } = call;
  const { message, steps, finish, matched } = choice.generation;
  const withPrompt = request.return_prompt_token_ids === true || request.return_token_ids === true;
  return {
    index: choice.index,
    message: {
      role: 'assistant',
      content: message.content,
      reasoning_content: message.reasoning === '' ? null : message.reasoning,
      tool_calls: message.calls.length === 0 ? null : callsBody(choice),
    },
    logprobs: logprobsOf(call, choice, 0, steps.length),
    finish_reason: finish,
    matched_stop: finish === 'tool_calls' ? null : matched,
    ...(givesTokenIds && withPrompt ? { prompt_token_ids: call.promptIds } : {}),
    ...(givesTokenIds && request.return_token_ids === true ? { response_token_ids: idsOf(choice) } : {}),
    ...(request.return_meta_info === true ? { meta_info: metaInfo(call, choice) } : {}),
  };
}

function metaInfo(call: ChatCall, choice: Choice): Body {
  const { steps, matched } = choice.generation;
  const withLogprobs = call.request.logprobs === true && call.givesLogprobs;
  return {
    id: call.id,
    finish_reason: matched === null ? { type: 'length', length: steps.length } : { type: 'stop', matched },
    prompt_tokens: call.promptIds.length,
    completion_tokens: steps.length,
    cached_tokens: 0,
    weight_version: choice.versions.at(-1)?.version,
    num_retractions: 0,
    weight_versions: choice.versions,
    ...(withLogprobs
      ? { output_token_logprobs: tokenLogprobs(choice), output_token_logprobs_length: steps.length }
      : {}),
    ...expertsOf(call, choice),
  };
}

/** Those of ids that the caller has not got yet. */
function expertsOf({ request, promptIds, experts }: ChatCall, choice: Choice): Body {
  if (request.return_routed_experts !== true || experts.layers === 0) return {};
  const from = request.routed_experts_start_len ?? 0;
  return { routed_experts: routedExperts([...promptIds, ...idsOf(choice)], from, experts) };
}

const tokenLogprobs = ({ generation, logprobs }: Choice): [number, number, null][] =>
  generation.steps.map(({ id }, position) => [logprobs.of(position, id), id, null]);

function sglext(call: ChatCall, choices: readonly Choice[]): Body {
  const { request, givesTokenIds } = call;
  const ids = {
    ...(givesTokenIds && request.return_input_ids_in_sglext === true ? { input_ids: call.promptIds } : {}),
    ...(givesTokenIds && request.return_output_ids_in_sglext === true
      ? { output_ids: choices.map(idsOf) }
      : {}),
    // Of the first choice alone; of a whole reply that tells meta_info, there.
    ...(choices[0] === undefined || request.return_meta_info === true ? {} : expertsOf(call, choices[0])),
  };
  return Object.keys(ids).length > 0 ? { sglext: ids } : {};
}
