// What a builder plug-in is shown of the calls, and its plan checked against the laws. A plan names calls; ids, masks and
// logprobs come from the records, so that a plug-in can leave out and mask, but not make up.
import { PolarError } from '../../common/errors.ts';
import { byStart, type MaskedCall } from './call.ts';
import { attach, type Branch } from './forest.ts';
import { type MaskedPart, maskedInParts } from './masking.ts';
import { idsOf, isPrefix } from './token-tree.ts';

/** A call as `build` of a plug-in gets it. */
export interface PlannedCall {
  readonly callId: string;
  /** Order in which the calls began. */
  readonly startSeq: number;
  /** Order in which they ended. */
  readonly endSeq: number;
  /** The longest call before it that it extends; null where there is none. */
  readonly extends: string | null;
  readonly promptLength: number;
  /** Its prompt behind the prompt and the sampled ids of the call that it extends; else all of it. */
  readonly newIds: Int32Array;
  readonly sampledIds: Int32Array;
  readonly logprobs: Float32Array | null;
  readonly finishReason: string;
  readonly model: string;
  readonly policyVersion: number;
  readonly trainable: boolean;
  /** main, sub or side. */
  readonly role: string;
  /** A number for each of its messages; equal number = equal content. */
  readonly messages: Int32Array;
  /** That of its reply; null when it was never delivered. */
  readonly reply: number | null;
  /** uint8, one for each sampled id: 1 = trained, unless the plan masks it. */
  readonly mask: Uint8Array;
}

/** What `build` of a plug-in gives back. */
export interface Plan {
  /** Calls of each trace in order, each extending the one before it. */
  readonly traces: readonly { readonly calls: readonly string[] }[];
  /** What is not trained, and why: sampled ids of a call from `start` (0) to before `end` (all). */
  readonly masks?: readonly PlannedMask[];
}

interface PlannedMask {
  readonly call: string;
  readonly reason: string;
  readonly start?: number;
  readonly end?: number;
}

/** Linear in the ids that are new in each call. */
export function plannedCalls(calls: readonly MaskedCall[]): PlannedCall[] {
  const ordered = calls.toSorted(byStart);
  const parents = attach(ordered.filter(({ sampledIds }) => sampledIds.length > 0));
  const numberOf = numbering();
  return ordered.map((call): PlannedCall => {
    const parent = parents.get(call);
    return {
      callId: call.callId,
      startSeq: call.startSeq,
      endSeq: call.endSeq,
      extends: parent?.callId ?? null,
      promptLength: call.prompt.depth,
      newIds: idsOf(call.prompt, parent?.end.depth ?? 0),
      sampledIds: call.sampledIds.slice(),
      logprobs: call.logprobs?.slice() ?? null,
      finishReason: call.finishReason,
      model: call.model,
      policyVersion: Number(call.policyVersion),
      trainable: call.trainable,
      role: call.role,
      messages: Int32Array.from(call.messages.list(), numberOf),
      reply: call.reply === null ? null : numberOf(call.reply),
      mask: call.mask.slice(),
    };
  });
}

/** Numbers texts as they come; an equal text has the same number. */
function numbering(): (text: string) => number {
  const numbers = new Map<string, number>();
  return (text) => {
    const known = numbers.get(text) ?? numbers.size;
    numbers.set(text, known);
    return known;
  };
}

/** The calls with the plan's masks, and its traces. Throws BUILDER_PLUGIN_FAILED for a plan that breaks a law. */
export function carryOut(
  plan: Plan,
  calls: readonly MaskedCall[],
): { readonly calls: MaskedCall[]; readonly branches: Branch[] } {
  const byId = new Map(calls.map((call) => [call.callId, call]));
  const known = (id: string): MaskedCall => {
    const call = byId.get(id);
    if (call === undefined) throw breach(`there is no call ${id.slice(0, 64)}`);
    return call;
  };
  const reasons = new Set(plan.masks?.map(({ reason }) => reason)).size;
  if (reasons > REASONS_MAX)
    throw breach(`there are ${reasons} reasons, at most REASONS_MAX (${REASONS_MAX})`);
  for (const [id, masks] of Map.groupBy(plan.masks ?? [], ({ call }) => call)) {
    byId.set(id, maskedBy(known(id), masks));
  }
  const placed = new Set<string>();
  const branches = plan.traces.flatMap(({ calls: ids }, i) => {
    const branch = ids.map((id) => {
      if (placed.has(id)) throw breach(`call ${id} is in its traces twice`);
      placed.add(id);
      return known(id);
    });
    checkServed(branch, `trace ${i}`);
    // Without a trained id behind it, a masked one is of no use.
    const last = branch.findLastIndex(({ trainedTokens }) => trainedTokens > 0);
    return last < 0 ? [] : [branch.slice(0, last + 1) as Branch];
  });
  const lost = [...byId.values()].find(
    ({ callId, trainedTokens }) => trainedTokens > 0 && !placed.has(callId),
  );
  if (lost !== undefined) {
    throw breach(`call ${lost.callId} is in no trace, and its plan does not say why it is masked`);
  }
  return {
    calls: calls.map(({ callId }) => byId.get(callId) as MaskedCall),
    branches: branches.sort((a, b) => byStart(a[0], b[0])),
  };
}

/** Reasons of one plan: each is counted in what is told of the session. */
const REASONS_MAX = 256;
const REASON = /^[a-z][a-z0-9_]{0,31}$/;

const maskedBy = (call: MaskedCall, masks: readonly PlannedMask[]): MaskedCall => ({
  ...call,
  ...maskedInParts(
    call,
    masks.map((mask) => partOf(call, mask)),
  ),
});

function partOf(call: MaskedCall, { reason, start = 0, end }: PlannedMask): MaskedPart {
  const to = end ?? call.mask.length;
  if (!REASON.test(reason)) throw breach(`a reason must be 1 to 32 of [a-z0-9_], not ${reason.slice(0, 64)}`);
  if (!(Number.isInteger(start) && Number.isInteger(to) && start >= 0 && to <= call.mask.length)) {
    throw breach(`ids ${start} to ${to} of call ${call.callId} are masked, which has ${call.mask.length}`);
  }
  return { reason, from: start, to };
}

/** What precedes each call in the trace is what was served for it. */
function checkServed(branch: readonly MaskedCall[], where: string): void {
  for (const [i, call] of branch.slice(1).entries()) {
    const before = branch[i] as MaskedCall;
    if (isPrefix(before.end, call.prompt)) continue;
    throw breach(`in ${where} call ${call.callId} does not extend ${before.callId}: it was not served that`);
  }
}

const breach = (what: string): PolarError =>
  new PolarError('BUILDER_PLUGIN_FAILED', `the builder's plan is refused: ${what}`);
