// vLLM: ids at the top of the reply (prompt) and in the choice (sampled); in a stream with the text they belong to. Routed
// experts come in the choice of whole replies, asked for or not, where the server runs with --enable-return-routed-experts.
import { ENGINE_FEATURES } from '../domain/engine-features.ts';
import { arrayOf, countOf, idsOf, type JsonObject, objectOf, textOf } from '../domain/json.ts';
import { readNpy } from '../domain/npy.ts';
import { UNREADABLE } from '../domain/routed-experts.ts';
import { addLogprobs, addSampled, type Sampled, sampledOf, type Tokens } from '../domain/tokens.ts';
import type { EngineAdapter } from './adapter.ts';

export const vllm: EngineAdapter = {
  kind: 'vllm',
  features: ENGINE_FEATURES.vllm,
  // Without top_logprobs some versions leave logprobs.content empty.
  fields: () => ({ logprobs: true, top_logprobs: 0, return_token_ids: true }),
  expertFields: (from) => (from > 0 ? { routed_experts_prompt_start: from } : {}),
  readReply: read,
  // The finish chunk may hold ids beside an empty text.
  readChunk: read,
  advice:
    'the server must answer return_token_ids (vLLM 0.32 does), and no router in front of it may remove the field',
};

function read(reply: JsonObject, into: Tokens): void {
  const prompt = idsOf(reply['prompt_token_ids']);
  if (prompt !== undefined) into.promptIds = prompt;
  for (const choice of arrayOf(reply['choices'])) readChoice(objectOf(choice), into);
}

function readChoice(choice: JsonObject, into: Tokens): void {
  const prompt = idsOf(choice['prompt_token_ids']);
  if (prompt !== undefined) into.promptIds ??= prompt;
  const sampled = sampledOf(into, countOf(choice['index']));
  const ids = idsOf(choice['token_ids']);
  if (ids !== undefined) addSampled(sampled, ids);
  addLogprobs(sampled, choice);
  tellExperts(into, sampled, choice);
}

/** They are most of the reply, and nobody else's business: it is not kept with them. */
export function tellExperts({ expertsFrom }: Tokens, sampled: Sampled, choice: JsonObject): void {
  const experts = textOf(choice['routed_experts']);
  delete choice['routed_experts'];
  if (experts === undefined || expertsFrom === undefined) return;
  sampled.experts = readNpy(Buffer.from(experts, 'base64')) ?? UNREADABLE;
}
