// What a builder's configuration masks of the calls of an attempt.
import type { BuilderPolicies } from '../../common/specs/strategies.ts';
import { byStart, type Call, type MaskedCall } from './call.ts';
import { attach } from './forest.ts';
import { maskedMore, maskOf } from './masking.ts';

/** The calls with their masks by these policies. */
export function withPolicies(calls: readonly Call[], policies: BuilderPolicies): MaskedCall[] {
  const masked = withMasks(calls, policies);
  if (policies.retries === 'train' && policies.abandoned === 'train') return masked;
  const ordered = masked.filter(({ sampledIds }) => sampledIds.length > 0).sort(byStart);
  const parents = attach(ordered);
  const retried = policies.retries === 'mask' ? retriedOf(ordered, parents) : new Set<MaskedCall>();
  const abandoned = policies.abandoned === 'mask' ? abandonedOf(ordered, parents) : new Set<MaskedCall>();
  return masked.map((call) => {
    if (retried.has(call)) return { ...call, ...maskedMore(call, 'retried') };
    return abandoned.has(call) ? { ...call, ...maskedMore(call, 'abandoned') } : call;
  });
}

/** All masks lie in one piece of memory: one for each of many calls would cost more to collect than to fill. */
function withMasks(calls: readonly Call[], policies: BuilderPolicies): MaskedCall[] {
  const room = new Uint8Array(calls.reduce((sum, { sampledIds }) => sum + sampledIds.length, 0));
  let at = 0;
  return calls.map((call): MaskedCall => {
    const empty = room.subarray(at, at + call.sampledIds.length);
    at += empty.length;
    const { mask, trainedTokens, masked } = maskOf(call, policies, empty);
    return { ...call, mask, trainedTokens, masked };
  });
}

/**
 * Of calls in one role with the same prompt, those that another call extends count; where none is extended, the last one
 * does. The others are retries nobody went on with.
 */
function retriedOf(
  ordered: readonly MaskedCall[],
  parents: ReadonlyMap<MaskedCall, MaskedCall>,
): Set<MaskedCall> {
  const extended = new Set(parents.values());
  const retried = new Set<MaskedCall>();
  for (const same of Map.groupBy(ordered, ({ prompt }) => prompt).values()) {
    for (const asked of Map.groupBy(same, ({ role }) => role).values()) {
      const counts = asked.filter((call) => extended.has(call));
      const kept = new Set(counts.length > 0 ? counts : [lastOf(asked)]);
      for (const call of asked) if (!kept.has(call)) retried.add(call);
    }
  }
  return retried;
}

/**
 * Main calls that are not on the way to the last main call of their tree: the conversation went back behind them. Calls
 * in other roles (sub-agents that forked) are branches of their own and never abandoned.
 */
function abandonedOf(
  ordered: readonly MaskedCall[],
  parents: ReadonlyMap<MaskedCall, MaskedCall>,
): Set<MaskedCall> {
  const roots = new Map<MaskedCall, MaskedCall>();
  for (const call of ordered) {
    const parent = parents.get(call);
    roots.set(call, parent === undefined ? call : (roots.get(parent) as MaskedCall));
  }
  const abandoned = new Set<MaskedCall>();
  const main = ordered.filter(({ role }) => role === 'main');
  for (const tree of Map.groupBy(main, (call) => roots.get(call)).values()) {
    const onTheWay = new Set<MaskedCall>();
    for (let call = lastOf(tree); call !== undefined; call = parents.get(call)) onTheWay.add(call);
    for (const call of tree) if (!onTheWay.has(call)) abandoned.add(call);
  }
  return abandoned;
}

/** By start; one of which nothing is trained, as its reply broke off, only where there is no other. */
const lastOf = (calls: readonly MaskedCall[]): MaskedCall | undefined =>
  calls.findLast(({ trainedTokens }) => trainedTokens > 0) ?? calls.at(-1);
