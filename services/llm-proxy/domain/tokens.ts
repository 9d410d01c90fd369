// What an engine tells about one reply at token level, collected from one body or from the chunks of a stream.
import { packFloats } from '../../common/columns.ts';
import { arrayOf, type JsonObject, type JsonValue, objectOf, textOf } from './json.ts';

/** vLLM's word for no logprob. */
const SENTINEL = -9998;

export interface Tokens {
  /** Unset: the engine has not told. */
  promptIds: Int32Array | undefined;
  /** Unset: the engine has not told. */
  sampledIds: number[] | undefined;
  /** As told so far; a hole is NaN. */
  logprobs: number[];
  /** The engine's word for its weights, empty where it has none. */
  weightVersion: string;
}

export const noTokens = (): Tokens => ({
  promptIds: undefined,
  sampledIds: undefined,
  logprobs: [],
  weightVersion: '',
});

/** A logprob; what is none (null, -9999, infinite, positive) is a hole. */
export const logprobOf = (value: JsonValue | undefined): number =>
  typeof value === 'number' && value > SENTINEL && value <= 0 ? value : Number.NaN;

/** Add ids that were sampled. */
export function addSampled(tokens: Tokens, ids: Int32Array): void {
  tokens.sampledIds ??= [];
  for (const id of ids) tokens.sampledIds.push(id);
}

/** Add the logprobs of a choice in the form of the OpenAI dialect. */
export function addLogprobs(tokens: Tokens, choice: JsonObject): void {
  for (const entry of arrayOf(objectOf(choice['logprobs'])['content'])) {
    tokens.logprobs.push(logprobOf(objectOf(entry)['logprob']));
  }
}

/** The logprobs as a column; unset where the engine gave none or not one for each id. */
export function logprobColumn({ sampledIds, logprobs }: Tokens): Uint8Array | undefined {
  if (sampledIds === undefined || sampledIds.length !== logprobs.length) return undefined;
  return packFloats(logprobs);
}

/** The trainer's number for the weights; 0 where the engine's word for them is no number. */
export const policyVersionOf = (weightVersion: string): bigint =>
  /^\d{1,18}$/.test(weightVersion) ? BigInt(weightVersion) : 0n;

/** The weights with which the first token was sampled, from SGLang's `metadata` or `meta_info`. */
export function weightVersionOf(info: JsonValue | undefined): string | undefined {
  const { weight_versions: spans, weight_version: atEnd } = objectOf(info);
  return textOf(objectOf(arrayOf(spans)[0])['version']) ?? textOf(atEnd);
}
