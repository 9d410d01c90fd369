// The policy document: how long calls were held, which the clocks of sessions leave out.
import type { Policy } from '../../gen/ts/polar/event/v1/policy_pb.js';

/**
 * Milliseconds between two moments (Unix time in milliseconds) in which calls were held; `passedMs` says how many lie between
 * two, where the clock that shows them was set.
 */
export function heldMs(
  policy: Pick<Policy, 'pauses'>,
  fromMs: number,
  toMs: number,
  passedMs: (fromMs: number, toMs: number) => number = (from, to) => to - from,
): number {
  let sum = 0;
  for (const { startMs, endMs } of policy.pauses) {
    const end = endMs === 0n ? toMs : Math.min(Number(endMs), toMs);
    const start = Math.max(Number(startMs), fromMs);
    if (end > start) sum += Math.max(0, passedMs(start, end));
  }
  return sum;
}
