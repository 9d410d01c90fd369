// SGLang: ids in the choice of a whole reply, in `sglext` of the last chunk of a stream.
import { unpackIds } from '../../common/columns.ts';
import { ENGINE_FEATURES } from '../domain/engine-features.ts';
import {
  arrayOf,
  countOf,
  idsOf,
  type JsonObject,
  type JsonValue,
  objectOf,
  textOf,
} from '../domain/json.ts';
import { logprobOf } from '../domain/logprob.ts';
import { UNREADABLE } from '../domain/routed-experts.ts';
import {
  addLogprobs,
  addSampled,
  logprobsOf,
  type Sampled,
  sampledOf,
  type Tokens,
  weightSpansOf,
  weightVersionOf,
} from '../domain/tokens.ts';
import type { EngineAdapter } from './adapter.ts';

export const sglang: EngineAdapter = {
  kind: 'sglang',
  features: ENGINE_FEATURES.sglang,
  // Each form is refused with 400 where the other one belongs.
  fields: (stream) =>
    stream
      ? { logprobs: true, return_input_ids_in_sglext: true, return_output_ids_in_sglext: true }
      : { logprobs: true, return_prompt_token_ids: true, return_token_ids: true, return_meta_info: true },
  expertFields: (from) => ({
    return_routed_experts: true,
    ...(from > 0 && { routed_experts_start_len: from }),
  }),
  // Off is 0 in other APIs, and in vLLM.
  inItsWords: (sent) => (sent['top_k'] === 0 ? { ...sent, top_k: -1 } : sent),
  readReply,
  readChunk,
  advice:
    'the server must answer return_token_ids and return_prompt_token_ids, in streams return_input_ids_in_sglext and ' +
    'return_output_ids_in_sglext (SGLang 0.5.23 does), and no router in front of it may remove the fields; start it ' +
    'with --tool-call-parser or --reasoning-parser, else streams lose the logprobs of tokens without text',
};

function readReply(reply: JsonObject, into: Tokens): void {
  for (const choice of arrayOf(reply['choices']).map(objectOf)) readChoice(choice, into);
  const meta = objectOf(objectOf(arrayOf(reply['choices'])[0])['meta_info']);
  // In meta_info, weight_version is that at the end; metadata is of the first choice alone.
  into.weightVersion = weightVersionOf(reply['metadata']) ?? weightVersionOf(meta) ?? '';
  into.spans = weightSpansOf(reply['metadata']);
}

function readChoice(choice: JsonObject, into: Tokens): void {
  const prompt = idsOf(choice['prompt_token_ids']) ?? idsOf(choice['input_token_ids']);
  if (prompt !== undefined) into.promptIds ??= prompt;
  const sampled = sampledOf(into, countOf(choice['index']));
  const meta = objectOf(choice['meta_info']);
  tellExperts(sampled, meta);
  tellWeights(sampled, meta);
  const pairs = arrayOf(meta['output_token_logprobs']);
  const told = idsOf(choice['response_token_ids']) ?? idsOf(choice['token_ids']);
  const ids = told ?? (isWhole(meta, pairs) ? idsOf(pairs.map(idIn)) : undefined);
  if (ids !== undefined) addSampled(sampled, ids);
  // Some versions cut logprobs.content short; pairs count only where they name the very ids.
  const paired = pairs.length === ids?.length && pairs.every((pair, i) => idIn(pair) === ids[i]);
  if (paired) {
    const all = logprobsOf(sampled);
    for (const pair of pairs) all.push(logprobOf(arrayOf(pair)[0]));
  } else {
    addLogprobs(sampled, choice);
  }
}

function readChunk(chunk: JsonObject, into: Tokens): void {
  const ext = objectOf(chunk['sglext']);
  const prompt = idsOf(ext['input_ids']);
  if (prompt !== undefined) into.promptIds = prompt;
  const columns = arrayOf(ext['output_ids']);
  for (const [index, column] of columns.entries()) {
    const ids = idsOf(column);
    if (ids !== undefined) addSampled(sampledOf(into, index), ids);
  }
  // Of several choices a stream tells those of one, and not of which.
  if (columns.length === 1) tellExperts(sampledOf(into, 0), ext);
  for (const choice of arrayOf(chunk['choices']).map(objectOf)) {
    addLogprobs(sampledOf(into, countOf(choice['index'])), choice);
  }
  into.weightVersion = weightVersionOf(chunk['metadata']) ?? into.weightVersion;
}

/** An update may come at another token of each choice. */
function tellWeights(sampled: Sampled, meta: JsonObject): void {
  if (arrayOf(meta['weight_versions']).length === 0) return;
  sampled.weights = { weightVersion: weightVersionOf(meta) ?? '', spans: weightSpansOf(meta) };
}

/** They are most of the reply, and nobody else's business: it is not kept with them. */
function tellExperts(sampled: Sampled, told: JsonObject): void {
  const experts = textOf(told['routed_experts']);
  if (experts === undefined) return;
  const bytes = Buffer.from(experts, 'base64');
  const isWholeNumbers = bytes.length % Int32Array.BYTES_PER_ELEMENT === 0;
  sampled.experts = isWholeNumbers ? { values: unpackIds(bytes) } : UNREADABLE;
  delete told['routed_experts'];
}

/** Whether there is a pair for each id. */
const isWhole = ({ completion_tokens: count }: JsonObject, { length }: readonly JsonValue[]): boolean =>
  length > 0 && (count === undefined || count === length);

const idIn = (pair: JsonValue): JsonValue => arrayOf(pair)[1] ?? null;
