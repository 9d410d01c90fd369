// Completion records of calls that are written out in full, as in test/vectors.
import { create } from '@bufbuild/protobuf';
import { type Completion, CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { packFloats, packIds } from '../../services/common/columns.ts';

/** One call in the format of docs/export-format.md. */
export interface RecordedCall {
  readonly call_id: string;
  readonly start_seq: number;
  readonly end_seq: number;
  readonly prompt_ids: readonly number[];
  readonly sampled_ids: readonly number[];
  readonly logprobs: readonly (number | null)[] | null;
  readonly finish_reason: string;
  readonly model: string;
  readonly policy_version: number;
  readonly trainable?: boolean;
  readonly role?: string;
  readonly messages: readonly string[];
  readonly reply: string | null;
}

/**
 * The records by index, which is the order of the calls' ends. Each prompt is what it shares with an earlier record and
 * the rest: the record that shares most or, with `random`, any one and any part of what it shares.
 */
export function recordsOf(calls: readonly RecordedCall[], random?: () => number): Completion[] {
  const ended = [...calls].sort((a, b) => a.end_seq - b.end_seq);
  return ended.map((call, index) => {
    const base = baseOf(call, ended.slice(0, index), random);
    return create(CompletionSchema, {
      callId: call.call_id,
      index,
      startSeq: BigInt(call.start_seq),
      endSeq: BigInt(call.end_seq),
      baseIndex: base.index,
      baseLength: base.length,
      promptSuffixIds: packIds(call.prompt_ids.slice(base.length)),
      promptLength: call.prompt_ids.length,
      sampledIds: packIds(call.sampled_ids),
      ...(call.logprobs !== null && { logprobs: packFloats(call.logprobs) }),
      finishReason: call.finish_reason,
      model: call.model,
      engine: 'sglang',
      policyVersion: BigInt(call.policy_version),
      trainable: call.trainable ?? true,
      role: call.role ?? 'main',
      messageDigests: call.messages.map(digest),
      replyDigest: call.reply === null ? '' : digest(call.reply),
      usage: { promptTokens: call.prompt_ids.length, completionTokens: call.sampled_ids.length },
    });
  });
}

const digest = (name: string): string => `digest:${name}`;

function baseOf(
  call: RecordedCall,
  earlier: readonly RecordedCall[],
  random: (() => number) | undefined,
): { readonly index: number; readonly length: number } {
  const shared = earlier.map((one) => sharedLength(call.prompt_ids, [...one.prompt_ids, ...one.sampled_ids]));
  if (random !== undefined) {
    const index = Math.floor(random() * (earlier.length + 1)) - 1;
    return { index, length: Math.floor(random() * ((shared[index] ?? 0) + 1)) };
  }
  const length = Math.max(0, ...shared);
  return length === 0 ? { index: -1, length: 0 } : { index: shared.lastIndexOf(length), length };
}

function sharedLength(a: readonly number[], b: readonly number[]): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

let seq = 0;

/** A call that was sampled and ended well, behind all that were made before it here. */
export const sampledCall = (
  call_id: string,
  prompt_ids: readonly number[],
  sampled_ids: readonly number[],
  changes: Partial<RecordedCall> = {},
): RecordedCall => ({
  call_id,
  start_seq: seq++,
  end_seq: seq++,
  prompt_ids,
  sampled_ids,
  logprobs: sampled_ids.map(() => -0.5),
  finish_reason: 'stop',
  model: 'policy',
  policy_version: 7,
  messages: ['s', 'u'],
  reply: 'r',
  ...changes,
});
