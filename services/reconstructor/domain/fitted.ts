// Traces that are too many for one trajectory. Each trace of `per_request` begins with its whole prompt, so that a long
// session makes hundreds of times what was recorded of it.
import type { MaskedCall } from './call.ts';
import { lengthOf } from './experts.ts';
import type { Branch } from './forest.ts';
import { maskedMore } from './masking.ts';

/**
 * Columns of the traces of a trajectory; what is trained in those that come when it is full is masked as `too_large`. With
 * EXPERT_BYTES_MAX beside it this is less than a blob may have.
 */
export const TRACE_BYTES_MAX = 160 * 1024 * 1024;

/** Of an id in the prompt, and of one in the response: with mask and logprob. */
const [PROMPT_ID_BYTES, RESPONSE_ID_BYTES] = [4, 9];

/** What there is room for, and the calls of all others. */
export interface Fitted {
  readonly branches: Branch[];
  /** By the call before it was masked. */
  readonly leftOut: ReadonlyMap<MaskedCall, MaskedCall>;
}

/** The first branches whose columns have at most `max` bytes together. */
export function fitted(branches: readonly Branch[], max: number): Fitted {
  let bytes = 0;
  const end = branches.findIndex((branch) => {
    bytes += columnBytesOf(branch);
    return bytes > max;
  });
  if (end < 0) return { branches: [...branches], leftOut: new Map() };
  const others = branches.slice(end).flat();
  const leftOut = new Map(others.map((call) => [call, { ...call, ...maskedMore(call, 'too_large') }]));
  return { branches: branches.slice(0, end), leftOut };
}

function columnBytesOf(branch: Branch): number {
  const prompt = branch[0].prompt.depth;
  return prompt * PROMPT_ID_BYTES + (lengthOf(branch) - prompt) * RESPONSE_ID_BYTES;
}
