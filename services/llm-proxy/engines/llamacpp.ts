// llama-server: all sampled ids in `__verbose` of a whole reply; logprobs without those tokens that only with others
// make a character; the text of the prompt, whose ids its own tokenizer tells.
import { ENGINE_FEATURES } from '../domain/engine-features.ts';
import {
  arrayOf,
  countOf,
  idsOf,
  isObject,
  type JsonObject,
  type JsonValue,
  objectOf,
  textOf,
} from '../domain/json.ts';
import { logprobOf } from '../domain/logprob.ts';
import { pairLogprobs, type TokenLogprob } from '../domain/pairing.ts';
import { addSampled, sampledOf, type Tokens } from '../domain/tokens.ts';
import type { AskEngine, EngineAdapter } from './adapter.ts';

const VERBOSE = '__verbose';

export const llamacpp: EngineAdapter = {
  kind: 'llamacpp',
  features: ENGINE_FEATURES.llamacpp,
  // With top_logprobs 0 it tells no logprobs at all, without it twenty.
  fields: () => ({ logprobs: true, top_logprobs: 1, verbose: true, return_tokens: true }),
  inItsWords: ({ repetition_penalty: penalty, ...sent }) =>
    penalty === undefined ? sent : { ...sent, repeat_penalty: penalty },
  readsEntries: true,
  readReply,
  readChunk: () => {},
  completeReply,
  advice:
    'llama-server must answer verbose and return_tokens, and /tokenize must give as many ids as the prompt had ' +
    '(it does not where the prompt has images)',
};

function readReply(reply: JsonObject, into: Tokens): void {
  const choice = objectOf(arrayOf(reply['choices'])[0]);
  const ids = idsOf(objectOf(reply[VERBOSE])['tokens']);
  if (ids === undefined) return;
  const sampled = sampledOf(into, 0);
  addSampled(sampled, ids);
  const entries = arrayOf(objectOf(choice['logprobs'])['content']).map(objectOf);
  sampled.logprobs = pairLogprobs(ids, entries.map(entryOf)) ?? [];
}

const entryOf = ({ id, logprob }: JsonObject): TokenLogprob => ({
  id: typeof id === 'number' ? id : -1,
  logprob: logprobOf(logprob),
});

/** The stop string that a completion has met, as vLLM tells it of a choice; null: none. */
export const stopOf = ({ stop_type: why, stopping_word: word }: JsonObject): string | null =>
  why === 'word' ? (textOf(word) ?? null) : null;

/** A reply that goes on with a text says that again, before what was sampled. */
function onlySampled(message: JsonValue | undefined, sampled: string, sent: JsonObject): void {
  if (sent['continue_final_message'] !== true || !isObject(message)) return;
  const begun = textOf(objectOf(arrayOf(sent['messages']).at(-1))['content']);
  const said = textOf(message['content']);
  if (begun === undefined || said === undefined) return;
  if (said.startsWith(begun) && !sampled.startsWith(said)) message['content'] = said.slice(begun.length);
}

async function completeReply(
  reply: JsonObject,
  into: Tokens,
  ask: AskEngine,
  sent: JsonObject,
): Promise<void> {
  const verbose = objectOf(reply[VERBOSE]);
  const { prompt, tokens_evaluated: count } = verbose;
  delete reply[VERBOSE];
  const [choice] = arrayOf(reply['choices']);
  if (isObject(choice)) {
    choice['stop_reason'] = stopOf(verbose);
    onlySampled(choice['message'], textOf(verbose['content']) ?? '', sent);
  }
  const content = textOf(prompt);
  if (content === undefined) return;
  const { tokens } = await ask('/tokenize', { content, add_special: true, parse_special: true });
  const ids = idsOf(tokens);
  if (ids?.length === countOf(count)) into.promptIds = ids;
}
