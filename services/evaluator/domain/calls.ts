// The calls of a session as a command of the task gets them: what was said, and no token ids.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';

/** One JSON object for each record; they come by index, which is the order in which the calls ended. */
export function callLines(records: readonly Completion[]): string[] {
  const bodies = new Map(records.flatMap(({ messageBodies }) => Object.entries(messageBodies)));
  const body = (digest: string): string => bodies.get(digest) ?? 'null';
  return records.map((record) => {
    const { baseIndex, baseMessageCount, messageDigests, replyDigest } = record;
    const head = JSON.stringify({
      call_id: record.callId,
      start_seq: Number(record.startSeq),
      end_seq: Number(record.endSeq),
      role: record.role === '' ? 'main' : record.role,
      trainable: record.trainable,
      finish_reason: record.finishReason,
      model: record.model,
      sampled_tokens: record.noTokenIds
        ? (record.usage?.completionTokens ?? 0)
        : record.sampledIds.length / 4,
      base_call_id: baseMessageCount === 0 ? null : (records[baseIndex]?.callId ?? null),
      base_messages: baseMessageCount,
    });
    // Bodies are JSON already.
    return `${head.slice(0, -1)},"messages":[${messageDigests.map(body)}],"reply":${body(replyDigest)}}`;
  });
}

/** The records by index, each once; undefined where some of the `count` are not there. */
export function wholeRecords(records: readonly Completion[], count: number): Completion[] | undefined {
  const byIndex = new Map(records.map((record) => [record.index, record]));
  const whole = Array.from({ length: count }, (_, index) => byIndex.get(index));
  return whole.every((record) => record !== undefined) ? whole : undefined;
}
