// Whether an engine is asked for its routed experts: they come in one piece with the reply, which must not fail for them.
import { countOf, type JsonObject, type JsonValue } from '../domain/json.ts';
import { toldBytes } from '../domain/routed-experts.ts';
import type { Tokens } from '../domain/tokens.ts';
import type { Engine } from './engine.ts';

/** Reply of an engine that is asked: some kilobytes for each id. */
export const EXPERTS_REPLY_BYTES_MAX = 256 * 1024 * 1024;
/** Asked up to here; twice as many come where a text has twice as many ids as it seems to have. */
const EXPERTS_ASKED_BYTES_MAX = EXPERTS_REPLY_BYTES_MAX / 2;
/** Of a request's text, for each id. */
const BYTES_PER_ID = 3;
/** Ids that are sampled where the request sets no limit. */
const SAMPLED_IDS_ASSUMED = 16_384;

/** Ids of a prompt that is given, and how many of them have rows that are known. */
interface Given {
  readonly length: number;
  readonly expertRows: number;
}

/**
 * What a request says that asks for the rows which are not known yet, where there may be so many; `tokens` says from which
 * on. `sent` is the request of text mode: its limit is the caller's own, not what an engine makes of none.
 */
export function askExperts(engine: Engine, sent: JsonObject, tokens: Tokens, given?: Given): JsonObject {
  const { experts: shape, adapter } = engine;
  if (shape === undefined || adapter.expertFields === undefined) return {};
  const from = given?.expertRows ?? 0;
  const ids = (given?.length ?? idsIn(sent)) - from + sampledAtMost(sent);
  if (toldBytes(shape, ids) * Math.max(1, countOf(sent['n'])) > EXPERTS_ASKED_BYTES_MAX) return {};
  tokens.expertsFrom = from;
  return adapter.expertFields(from);
}

/** About. Images are other ids than their text. */
function idsIn({ messages = [], tools = [] }: JsonObject): number {
  const text = JSON.stringify([messages, tools], (_, value: JsonValue) =>
    typeof value === 'string' && value.startsWith('data:') ? '' : value,
  );
  return Buffer.byteLength(text) / BYTES_PER_ID;
}

const sampledAtMost = ({ max_completion_tokens: most, max_tokens: atMost }: JsonObject): number =>
  countOf(most) || countOf(atMost) || SAMPLED_IDS_ASSUMED;
