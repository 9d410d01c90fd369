// The policy document: how long calls were held, which the clocks of sessions leave out.
import type { Policy } from '../../gen/ts/polar/event/v1/policy_pb.js';

/** Milliseconds between two moments (Unix time in milliseconds) in which calls were held. */
export function heldMs(policy: Pick<Policy, 'pauses'>, fromMs: number, toMs: number): number {
  let sum = 0;
  for (const { startMs, endMs } of policy.pauses) {
    const end = endMs === 0n ? toMs : Math.min(Number(endMs), toMs);
    sum += Math.max(0, end - Math.max(Number(startMs), fromMs));
  }
  return sum;
}
