// Calls and traces as JSON lines: docs/export-format.md.
import type { Trace } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { unpackFloats, unpackIds } from '../../common/columns.ts';
import type { Call, PolicyRun } from './call.ts';
import { idsOf } from './token-tree.ts';

/** One recorded model call. */
export function callLine(call: Call): string {
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
  });
}

const runOf = ({ policyVersion, start, length }: PolicyRun): object => ({
  policy_version: Number(policyVersion),
  start,
  length,
});

/** One built trace. */
export const traceLine = (trace: Trace): string => JSON.stringify(traceFields(trace));

export const traceFields = (trace: Trace): object => ({
  prompt_ids: [...unpackIds(trace.promptIds)],
  response_ids: [...unpackIds(trace.responseIds)],
  loss_mask: [...trace.lossMask],
  logprobs: [...unpackFloats(trace.logprobs)],
  calls: trace.spans.map((span) => span.callId),
});
