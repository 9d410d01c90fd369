// The engine's counts, which are of a call, on records, which are of one reply each.
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { UsageSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { countOf, type JsonObject, objectOf } from './json.ts';

/**
 * The counts for the reply at `index`, of which `sampled` ids are known each. Several replies have their own ids' number
 * where these add up to what the engine told; else the first one has all, so that the sum is the engine's. Unset: the
 * engine told none.
 */
export function usageOf(
  told: JsonObject,
  index: number,
  sampled: readonly number[],
): MessageInitShape<typeof UsageSchema> | undefined {
  if (Object.keys(told).length === 0) return undefined;
  const all = countOf(told['completion_tokens']);
  const addsUp = sampled.reduce((sum, length) => sum + length, 0) === all;
  return {
    promptTokens: countOf(told['prompt_tokens']),
    completionTokens: addsUp ? (sampled[index] ?? 0) : index === 0 ? all : 0,
    cachedTokens: countOf(objectOf(told['prompt_tokens_details'])['cached_tokens']),
  };
}
