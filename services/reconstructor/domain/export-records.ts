// Records and conversations as JSON lines: docs/export-format.md.
import type { JsonObject } from '@bufbuild/protobuf';
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import type { Call } from './call.ts';
import { callLine } from './export.ts';

/** int32. */
const ID_BYTES = 4;

/** What a call was, took and counted: as much for a call late in a long session as for its first. */
export function summaryLine(record: Completion): string {
  const { usage, times } = record;
  return JSON.stringify({
    call_id: record.callId,
    start_seq: Number(record.startSeq),
    end_seq: Number(record.endSeq),
    role: record.role,
    role_rule: record.roleRule,
    model: record.model,
    policy_version: Number(record.policyVersion),
    trainable: record.trainable,
    engine: record.engine,
    engine_url: record.engineUrl,
    engine_tries: record.engineTries,
    mode: record.mode,
    dialect: record.dialect,
    normalised_by: record.normalisedBy,
    sampling: record.sampling ?? {},
    finish_reason: record.finishReason,
    error_reason: record.errorReason,
    drift: record.drift,
    prompt_tokens: record.promptLength || (usage?.promptTokens ?? 0),
    sampled_tokens: record.noTokenIds
      ? (usage?.completionTokens ?? 0)
      : record.sampledIds.byteLength / ID_BYTES,
    cached_tokens: usage?.cachedTokens ?? 0,
    start_ms: Number(times?.startMs ?? 0),
    queue_ms: times?.queueMs ?? 0,
    first_token_ms: times?.firstTokenMs ?? 0,
    decode_ms: times?.decodeMs ?? 0,
    total_ms: times?.totalMs ?? 0,
  });
}

/** A call, how its engine was asked, and what that counted. `record` is the one that the call was made of. */
export function recordLine(call: Call, record: Completion): string {
  const { usage, sampling } = record;
  const more: JsonObject = {
    engine: record.engine,
    engine_url: record.engineUrl,
    mode: record.mode,
    dialect: record.dialect,
    logprob_mode: record.logprobMode,
    sampling: (sampling ?? {}) as JsonObject,
    usage:
      usage === undefined
        ? null
        : { prompt_tokens: usage.promptTokens, completion_tokens: usage.completionTokens },
    no_token_ids: record.noTokenIds,
    drift: record.drift,
    error_reason: record.errorReason,
  };
  return `${callLine(call).slice(0, -1)},${JSON.stringify(more).slice(1)}`;
}

/** Bodies of messages by digest; each is stored with the first record that names it. */
export type Bodies = ReadonlyMap<string, string>;

export function bodiesOf(records: readonly Completion[]): Bodies {
  return new Map(records.flatMap(({ messageBodies }) => Object.entries(messageBodies)));
}

/** What was said in a call: null in place of what no record holds. */
export function messagesLine(call: Call, record: Completion, bodies: Bodies): string {
  const body = (digest: string | null): string => (digest !== null && bodies.get(digest)) || 'null';
  const head = JSON.stringify({
    call_id: call.callId,
    start_seq: call.startSeq,
    end_seq: call.endSeq,
    finish_reason: call.finishReason,
    role: call.role,
    trainable: call.trainable,
    policy_version: Number(call.policyVersion),
  });
  const tools = record.toolsDigest === '' ? 'null' : body(record.toolsDigest);
  const goesOn = record.sampling?.['continue_final_message'] === true ? ',"goes_on":true' : '';
  // Bodies are JSON already.
  const said = `"messages":[${call.messages.list().map(body).join(',')}],"tools":${tools},"reply":${body(call.reply)}${goesOn}`;
  return `${head.slice(0, -1)},${said}}`;
}
