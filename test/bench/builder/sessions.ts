// Long sessions as an llm-proxy records them: each turn appends what a tool said, and then what the policy samples.
import { create, toBinary } from '@bufbuild/protobuf';
import { CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { packFloats, packIds } from '../../../services/common/columns.ts';
import { seeded } from '../../support/laws.ts';

/** Ids of one turn: half of it context, half sampled. */
export const TURN_TOKENS = 500;
const HALF = TURN_TOKENS / 2;
const VOCABULARY = 150_000;

/** The records of a session of `turns` turns, encoded as they lie in the stream. */
export function recordsOfSession(turns: number): Uint8Array[] {
  const random = seeded(turns);
  const ids = (): Int32Array => Int32Array.from({ length: HALF }, () => Math.floor(random() * VOCABULARY));
  return Array.from({ length: turns }, (_, turn) =>
    toBinary(
      CompletionSchema,
      create(CompletionSchema, {
        callId: `call-${turn}`,
        index: turn,
        startSeq: BigInt(2 * turn),
        endSeq: BigInt(2 * turn + 1),
        baseIndex: turn - 1,
        baseLength: turn * TURN_TOKENS,
        promptSuffixIds: packIds(ids()),
        promptLength: turn * TURN_TOKENS + HALF,
        sampledIds: packIds(ids()),
        logprobs: packFloats(Float32Array.from({ length: HALF }, () => -random())),
        finishReason: 'tool_calls',
        model: 'policy',
        engine: 'sglang',
        policyVersion: 7n,
        trainable: true,
        role: 'main',
        baseMessageCount: turn === 0 ? 0 : 2 * turn + 1,
        messageDigests: turn === 0 ? ['system', 'instruction'] : [`tool-${turn}`],
        replyDigest: `reply-${turn}`,
        usage: { promptTokens: turn * TURN_TOKENS + HALF, completionTokens: HALF },
      }),
    ),
  );
}
