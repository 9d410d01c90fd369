// Calls and traces as JSON lines: docs/export-format.md.
import type { Trace, TraceImage } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { unpackFloats, unpackIds } from '../../common/columns.ts';
import type { Call, PolicyRun } from './call.ts';
import { callExperts, traceExpertsFields } from './exported-experts.ts';
import { idsOf } from './token-tree.ts';

/** One recorded model call, with the reward that the evaluator gave it. */
export function callLine(call: Call, reward?: number): string {
  return JSON.stringify({
    call_id: call.callId,
    start_seq: call.startSeq,
    end_seq: call.endSeq,
    prompt_ids: [...idsOf(call.prompt)],
    sampled_ids: [...call.sampledIds],
    // NaN becomes null.
    logprobs: call.logprobs === undefined ? null : [...call.logprobs],
    finish_reason: call.finishReason,
    model: call.model,
    policy_version: Number(call.policyVersion),
    trainable: call.trainable,
    role: call.role,
    messages: call.messages.list(),
    reply: call.reply,
    ...(call.policyRuns.length > 0 && { policy_runs: call.policyRuns.map(runOf) }),
    ...(call.invalidToolCall && { invalid_tool_call: true }),
    ...(call.experts && { routed_experts: callExperts(call.experts) }),
    ...(call.expertsFault !== '' && { routed_experts_fault: call.expertsFault }),
    ...(reward !== undefined && { reward }),
  });
}

const runOf = ({ policyVersion, start, length }: PolicyRun): object => ({
  policy_version: Number(policyVersion),
  start,
  length,
});

const imageFields = (image: TraceImage): object => ({
  digest: image.digest,
  media_type: image.mediaType,
  size_bytes: Number(image.sizeBytes),
  url: image.url,
  message: image.messageDigest,
  part: image.part,
});

/** One built trace. */
export const traceLine = (trace: Trace): string => JSON.stringify(traceFields(trace));

export const traceFields = (trace: Trace): object => ({
  prompt_ids: [...unpackIds(trace.promptIds)],
  response_ids: [...unpackIds(trace.responseIds)],
  loss_mask: [...trace.lossMask],
  logprobs: [...unpackFloats(trace.logprobs)],
  calls: trace.spans.map((span) => span.callId),
  ...(trace.routedExperts && { routed_experts: traceExpertsFields(trace.routedExperts) }),
  ...(trace.images.length > 0 && { images: trace.images.map(imageFields) }),
  ...(trace.reward !== undefined && { reward: trace.reward }),
});
