// Traces that are too long: cut at the end, so that what precedes every id that is left is what was served for it.
import type { MaskedCall } from './call.ts';
import type { Branch } from './forest.ts';
import { maskedMore } from './masking.ts';

/** What is left of branches, and what became of the calls that were cut. */
export interface Clipped {
  readonly branches: Branch[];
  /** By the call before the cut. */
  readonly cut: ReadonlyMap<MaskedCall, MaskedCall>;
}

/** Prompt and response of each branch are at most `max` ids afterwards. What is cut is masked as `clipped`. */
export function clip(branches: readonly Branch[], max: number | undefined): Clipped {
  if (max === undefined) return { branches: [...branches], cut: new Map() };
  const cut = new Map<MaskedCall, MaskedCall>();
  const left: Branch[] = [];
  for (const branch of branches) {
    const kept = branch.map((call) => {
      const now = clipCall(call, max);
      if (now !== call) cut.set(call, now);
      return now;
    });
    // Without a trained id behind it, a masked one is of no use.
    const last = kept.findLastIndex((call) => call.trainedTokens > 0);
    if (last >= 0) left.push(kept.slice(0, last + 1) as Branch);
  }
  return { branches: left, cut };
}

function clipCall(call: MaskedCall, max: number): MaskedCall {
  if (call.end.depth <= max) return call;
  const keep = Math.max(0, max - call.prompt.depth);
  const masking = maskedMore(call, 'clipped', keep);
  return {
    ...call,
    ...masking,
    sampledIds: call.sampledIds.subarray(0, keep),
    mask: masking.mask.subarray(0, keep),
  };
}
