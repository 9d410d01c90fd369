// llama-server: /completion takes ids and answers with text, which is parsed here as a Hermes or Qwen model writes it.
import { newId } from '../../../common/ids.ts';
import {
  arrayOf,
  countOf,
  idsOf,
  type JsonObject,
  type JsonValue,
  objectOf,
  textOf,
} from '../../domain/json.ts';
import { logprobOf } from '../../domain/logprob.ts';
import { pairLogprobs } from '../../domain/pairing.ts';
import { addSampled, sampledOf } from '../../domain/tokens.ts';
import { readWrittenTurn } from '../../domain/written-turn.ts';
import { newReplyId } from '../../engines/engine.ts';
import { stopOf } from '../../engines/llamacpp.ts';
import type { TokenRequest, TokenWay } from '../../engines/token-call.ts';
import { withIds } from './body.ts';

/** Fields that /completion takes under the same name. */
const SAME = [
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'seed',
  'stop',
  'presence_penalty',
  'frequency_penalty',
  'logit_bias',
  'ignore_eos',
];

/** What only its chats turn into a grammar. */
const GRAMMARS = ['json_schema', 'grammar'];

function isConstrained(sent: JsonObject): boolean {
  const form = objectOf(sent['response_format'])['type'] ?? 'text';
  const isOneCall = sent['parallel_tool_calls'] === false;
  return form !== 'text' || isOneCall || GRAMMARS.some((key) => (sent[key] ?? null) !== null);
}

export const llamacpp: TokenWay = {
  takes: (sent) => (sent['tool_choice'] ?? 'auto') === 'auto' && !isConstrained(sent),

  async whole(request, signal) {
    const { engine, model, sent, prompt, showsLogprobs } = request;
    const answer = await engine.ask('/completion', bodyOf(request), signal);
    read(answer, request);
    const written = textOf(answer['content']) ?? '';
    const turn = readWrittenTurn(written, arrayOf(sent['tools']).length > 0, () => newId('call'));
    const completion = countOf(answer['tokens_predicted']);
    return {
      id: newReplyId(),
      object: 'chat.completion',
      created: Math.floor(Date.now() / 1_000),
      model,
      choices: [
        {
          index: 0,
          message: turn,
          // The same entries as those of a chat.
          logprobs: showsLogprobs ? { content: [...arrayOf(answer['completion_probabilities'])] } : null,
          finish_reason: finishOf(answer, turn),
          stop_reason: stopOf(answer),
        },
      ],
      usage: {
        prompt_tokens: prompt.length,
        completion_tokens: completion,
        total_tokens: prompt.length + completion,
      },
    };
  },
};

function bodyOf({ sent, prompt }: TokenRequest): readonly Buffer[] {
  const most = sent['max_completion_tokens'] ?? sent['max_tokens'];
  // At least 1, as in text mode: with 0 it tells no logprobs.
  const body: JsonObject = {
    return_tokens: true,
    n_probs: countOf(sent['top_logprobs']) || 1,
    cache_prompt: true,
  };
  if (typeof most === 'number') body['n_predict'] = most;
  if (sent['repetition_penalty'] !== undefined) body['repeat_penalty'] = sent['repetition_penalty'];
  for (const key of SAME) if (sent[key] !== undefined && sent[key] !== null) body[key] = sent[key];
  if (typeof body['stop'] === 'string') body['stop'] = [body['stop']];
  return withIds('prompt', prompt, body);
}

/** Some sampled ids have no logprob: those that make a character only with others. */
function read(answer: JsonObject, { tokens }: TokenRequest): void {
  const ids = idsOf(answer['tokens']);
  if (ids === undefined) return;
  const sampled = sampledOf(tokens, 0);
  addSampled(sampled, ids);
  const entries = arrayOf(answer['completion_probabilities'])
    .map(objectOf)
    .map(({ id, logprob }) => ({ id: typeof id === 'number' ? id : -1, logprob: logprobOf(logprob) }));
  sampled.logprobs = pairLogprobs(ids, entries) ?? [];
}

function finishOf({ stop_type: why }: JsonObject, turn: JsonObject): JsonValue {
  if (why === 'limit') return 'length';
  return arrayOf(turn['tool_calls']).length > 0 ? 'tool_calls' : 'stop';
}
