// llama-server: ids of whole replies in `__verbose`, beside logprobs; prompts as text of which /tokenize tells the ids.
import { Buffer } from 'node:buffer';
import { readPrompt } from '../prompt/reading.ts';
import type { ChatRequest, CompletionRequest } from '../request.ts';
import type { Tokenizer } from '../tokenizer/tokenizer.ts';
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
  usageOf,
  wantsUsage,
} from './dialect.ts';

export const llamacpp: Dialect = {
  name: 'llamacpp',

  check() {},

  overflow(promptTokens, _tokensMax, contextTokens) {
    return `request (${promptTokens} tokens) exceeds the available context size (${contextTokens} tokens), try increasing it`;
  },

  error(fault) {
    return { error: { code: fault.status, message: fault.message, type: fault.type } };
  },

  errorEvent(fault) {
    return llamacpp.error(fault);
  },

  model(name, contextTokens, created) {
    return { id: name, object: 'model', created, owned_by: 'llamacpp', meta: { n_ctx: contextTokens } };
  },

  reply(call, choices) {
    const [first] = choices;
    return {
      id: call.id,
      object: 'chat.completion',
      created: call.created,
      model: call.model,
      choices: choices.map((choice) => choiceBody(call, choice)),
      usage: usageOf(call, choices),
      ...(call.request.verbose === true && first !== undefined ? { __verbose: verbose(call, first) } : {}),
    };
  },

  begin(call, { index }) {
    return [chunk(call, [{ index, delta: { role: 'assistant', content: null }, finish_reason: null }])];
  },

  tokens(call, choice, from, to) {
    const delta = deltaBody(choice, deltaOf(choice, from, to), 'reasoning_content');
    if (Object.keys(delta).length === 0) return [];
    return [chunk(call, [{ index: choice.index, delta, finish_reason: null }])];
  },

  close(call, choices) {
    const ends = choices.map(({ index, generation }) =>
      chunk(call, [{ index, delta: {}, finish_reason: generation.finish }]),
    );
    return wantsUsage(call) ? [...ends, chunk(call, [], { usage: usageOf(call, choices) })] : ends;
  },
};

function choiceBody(call: ChatCall, choice: Choice): Body {
  const { message, finish } = choice.generation;
  return {
    index: choice.index,
    finish_reason: finish,
    message: {
      role: 'assistant',
      content: message.content,
      ...(message.reasoning === '' ? {} : { reasoning_content: message.reasoning }),
      ...(message.calls.length === 0 ? {} : { tool_calls: callsBody(choice) }),
    },
    ...(call.request.logprobs === true ? { logprobs: { content: probabilities(call, choice) } } : {}),
  };
}

function verbose(call: ChatCall, choice: Choice): Body {
  return {
    prompt: call.tokenizer.decode(call.promptIds),
    tokens: call.givesTokenIds ? idsOf(choice) : [],
    tokens_evaluated: call.promptIds.length,
    ...endOf(choice),
  };
}

function endOf({ generation: { finish, matched } }: Choice): Body {
  const word = typeof matched === 'string' ? matched : '';
  const stopType = word === '' ? 'eos' : 'word';
  return { stop_type: finish === 'length' ? 'limit' : stopType, stopping_word: word };
}

const probabilities = ({ tokenizer }: ChatCall, choice: Choice): Body[] =>
  idsOf(choice).map((id, i) => ({
    id,
    token: Buffer.from(tokenizer.bytesOf(id)).toString('utf8'),
    logprob: choice.logprobs.of(i, id),
    top_logprobs: [],
  }));

/** The chat that POST /completion with ids is about. */
export function chatOfCompletion(
  tokenizer: Tokenizer,
  { prompt, n_predict, ...rest }: CompletionRequest,
): ChatRequest {
  const { messages, tools } = readPrompt(tokenizer.decode(prompt));
  const limit = n_predict == null || n_predict < 0 ? {} : { max_tokens: n_predict };
  return { ...rest, ...limit, messages, tools, input_ids: prompt, logprobs: true };
}

/** Its reply is text as the model wrote it. */
export function completed(call: ChatCall, choices: readonly Choice[]): Body {
  const [choice] = choices as [Choice];
  const { matched } = choice.generation;
  const ids = idsOf(choice);
  const content = call.tokenizer.decode(ids.filter((id) => !call.tokenizer.isSpecial(id)));
  return {
    content: typeof matched === 'string' ? content.slice(0, content.indexOf(matched)) : content,
    tokens: ids,
    tokens_predicted: ids.length,
    tokens_evaluated: call.promptIds.length,
    ...endOf(choice),
    completion_probabilities: probabilities(call, choice),
  };
}
