// Which call goes on from which, and the branches that come of it.
import { byStart, isDead, type MaskedCall } from './call.ts';
import type { TokenNode } from './token-tree.ts';

/** Calls of one trace, each extending the one before it. */
export type Branch = [...MaskedCall[], MaskedCall];

/** A call with what it attaches to, and the empty replies that lie between the two. */
interface Step {
  readonly call: MaskedCall;
  readonly parent: MaskedCall | undefined;
  readonly between: readonly MaskedCall[];
  /** Of all these, by start. */
  readonly first: MaskedCall;
}

/**
 * The branches of a session, by start of their first call. A call attaches to the longest call that started before it
 * and that it extends. A call of which nothing is trained is in a branch only if a trained one comes after it there.
 * The first such call (by start) that attaches to a call continues its branch; every further one begins its own.
 */
export function branches(calls: readonly MaskedCall[]): Branch[] {
  const found: Branch[] = [];
  const branchOf = new Map<MaskedCall, Branch>();
  for (const { call, parent, between } of stepsOf(calls.toSorted(byStart))) {
    let branch = parent && branchOf.get(parent);
    if (branch === undefined || branch.at(-1) !== parent) {
      branch = [...between, call];
      found.push(branch);
    } else branch.push(...between, call);
    branchOf.set(call, branch);
  }
  return found;
}

function stepsOf(ordered: readonly MaskedCall[]): Step[] {
  const parents = attach(ordered.filter((call) => call.sampledIds.length > 0));
  const kept = keep(ordered, parents);
  const empty = Map.groupBy(ordered.filter(isEmptyReply), (call) => call.end);
  const steps = ordered
    .filter((call) => kept.has(call))
    .map((call): Step => {
      const parent = parents.get(call);
      const between = empty.size === 0 ? NONE : emptyBetween(empty, parent, call);
      const first = between.reduce(earlierOf, call);
      return { call, parent, between, first };
    });
  return steps.sort((a, b) => byStart(a.first, b.first));
}

/** By call, the longest one before it that it extends. `ordered` by start, each with sampled ids. */
export function attach(ordered: readonly MaskedCall[]): Map<MaskedCall, MaskedCall> {
  const endsAt = new Map<TokenNode, MaskedCall>();
  const parents = new Map<MaskedCall, MaskedCall>();
  for (const call of ordered) {
    const parent = nearest(endsAt, call.prompt);
    if (parent !== undefined) parents.set(call, parent);
    // Of calls with the same ids the first one counts, but a trained one before one that is not.
    const same = endsAt.get(call.end);
    if (same === undefined || (same.trainedTokens === 0 && call.trainedTokens > 0))
      endsAt.set(call.end, call);
  }
  return parents;
}

function nearest(endsAt: ReadonlyMap<TokenNode, MaskedCall>, from: TokenNode): MaskedCall | undefined {
  for (let node: TokenNode | undefined = from; node !== undefined; node = node.parent) {
    const call = endsAt.get(node);
    if (call !== undefined) return call;
  }
  return undefined;
}

function keep(ordered: readonly MaskedCall[], parents: ReadonlyMap<MaskedCall, MaskedCall>): Set<MaskedCall> {
  const kept = new Set<MaskedCall>();
  for (const call of ordered.toReversed()) {
    if (call.trainedTokens > 0) kept.add(call);
    const parent = parents.get(call);
    if (parent !== undefined && kept.has(call)) kept.add(parent);
  }
  return kept;
}

/** Nothing was sampled, but the harness got the reply: a step of the conversation. */
const isEmptyReply = (call: MaskedCall): boolean =>
  call.sampledIds.length === 0 &&
  call.prompt.depth > 0 &&
  call.trainable &&
  call.role !== 'side' &&
  !isDead(call);

const NONE: readonly MaskedCall[] = [];

const earlierOf = (a: MaskedCall, b: MaskedCall): MaskedCall => (byStart(a, b) < 0 ? a : b);

/** Takes out the empty replies that the call extends and its parent does not, shortest first: each goes with one call. */
function emptyBetween(
  empty: Map<TokenNode, MaskedCall[]>,
  parent: MaskedCall | undefined,
  call: MaskedCall,
): readonly MaskedCall[] {
  const found: MaskedCall[] = [];
  for (let node: TokenNode | undefined = call.prompt; node !== undefined; node = node.parent) {
    if (parent !== undefined && node.depth < parent.end.depth) break;
    const here = empty.get(node);
    if (here === undefined) continue;
    const taken = here.filter((one) => byStart(one, call) < 0 && (!parent || byStart(parent, one) < 0));
    found.unshift(...taken);
    empty.set(
      node,
      here.filter((one) => !taken.includes(one)),
    );
  }
  return found;
}
