// Branches to training sequences.
import { create } from '@bufbuild/protobuf';
import {
  type CallSpan,
  CallSpanSchema,
  type PolicyRun,
  PolicyRunSchema,
  type Trace,
  type TraceImage,
  TraceImageSchema,
  TraceSchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { packFloats, packIds, roomForIds } from '../../common/columns.ts';
import type { MaskedCall } from './call.ts';
import { lengthOf, traceExperts } from './experts.ts';
import type { Branch } from './forest.ts';
import type { Image } from './images.ts';
import { idsOf } from './token-tree.ts';

/**
 * The trace of a branch: the first call's prompt, then all that follows to the last call's last sampled id. Every call
 * of the branch lies on the way to the last one, so what precedes each is what was served for it.
 */
export function traceOf(branch: Readonly<Branch>, withExperts = true): Trace {
  const offset = branch[0].prompt.depth;
  const last = branch.at(-1) as MaskedCall;
  const responseIds = roomForIds(last.prompt.depth - offset + last.sampledIds.length);
  idsOf(last.prompt, offset, responseIds);
  responseIds.set(last.sampledIds, last.prompt.depth - offset);
  const lossMask = new Uint8Array(responseIds.length);
  const logprobs = new Float32Array(responseIds.length);
  const spans: CallSpan[] = [];
  for (const call of branch) {
    const start = call.prompt.depth - offset;
    lossMask.set(call.mask, start);
    copyTrained(call, logprobs, start);
    spans.push(spanOf(call, start));
  }
  const routedExperts = withExperts ? traceExperts(last.experts, lengthOf(branch)) : undefined;
  return create(TraceSchema, {
    promptIds: packIds(idsOf(branch[0].prompt)),
    responseIds: packIds(responseIds),
    lossMask,
    logprobs: packFloats(logprobs),
    spans,
    ...(routedExperts && { routedExperts }),
    images: last.images.of(last.messages).map(imageMessage),
  });
}

const imageMessage = ({ sizeBytes, ...image }: Image): TraceImage =>
  create(TraceImageSchema, { ...image, sizeBytes: BigInt(sizeBytes) });

function copyTrained(call: MaskedCall, into: Float32Array, start: number): void {
  if (call.logprobs === undefined) return;
  if (call.trainedTokens === call.logprobs.length) {
    into.set(call.logprobs, start);
    return;
  }
  for (let i = 0; i < call.mask.length; i++) {
    if (call.mask[i] === 1) into[start + i] = call.logprobs[i] as number;
  }
}

const spanOf = (call: MaskedCall, start: number): CallSpan =>
  create(CallSpanSchema, {
    callId: call.callId,
    start,
    length: call.sampledIds.length,
    finishReason: call.finishReason,
    policyVersion: call.policyVersion,
    maskedReason: call.masked.size === 0 ? '' : [...call.masked.keys()].join(','),
    policyRuns: runsOf(call, start),
  });

/** Where in the response each version's ids lie, of those that are in it. */
function runsOf({ policyRuns, sampledIds }: MaskedCall, offset: number): PolicyRun[] {
  const runs: PolicyRun[] = [];
  for (const { policyVersion, start, length } of policyRuns) {
    const left = sampledIds.length - start;
    if (left <= 0) continue;
    const run = { policyVersion, start: offset + start, length: Math.min(length, left) };
    runs.push(create(PolicyRunSchema, run));
  }
  return runs;
}
