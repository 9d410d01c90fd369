// What engines tell as the logprob of a token.
import type { JsonValue } from './json.ts';

/** vLLM's word for no logprob. */
const SENTINEL = -9998;

/** A logprob; what is none (null, -9999, infinite, positive) is a hole. */
export const logprobOf = (value: JsonValue | undefined): number =>
  typeof value === 'number' && value > SENTINEL && value <= 0 ? value : Number.NaN;
