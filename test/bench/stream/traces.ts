// Traces as a trainer gets them: a prompt, then calls and what came back between them.
import { create, toBinary } from '@bufbuild/protobuf';
import { type Trajectory, TrajectorySchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { packFloats, packIds } from '../../../services/common/columns.ts';
import { chance } from '../../support/generated.ts';

/** One trace a session, as long; sessions are grouped as GRPO has them. */
export interface Shape {
  /** Prompt and response together. */
  readonly tokens: number;
  readonly sessions: number;
  /** Trajectories that differ; groups name them in turn. */
  readonly distinct: number;
}

/** Of a trace. */
const PROMPT_SHARE = 1 / 16;
const CALL_TOKENS = 512;
/** Of a call's span; the rest came back from a tool. */
const SAMPLED_SHARE = 0.75;
const VOCABULARY = 151_936;

/** The trajectory with that number; the same for the same numbers. */
export function trajectoryOf({ tokens }: Shape, index: number): Trajectory {
  const random = chance(tokens * 1_000_003 + index);
  const prompt = tokens * PROMPT_SHARE;
  const ids = Int32Array.from({ length: tokens }, () => Math.floor(random() * VOCABULARY));
  const lossMask = new Uint8Array(tokens - prompt);
  const logprobs = new Float32Array(tokens - prompt);
  const calls = Math.ceil(lossMask.length / CALL_TOKENS);
  const spans = Array.from({ length: calls }, (_, call) => {
    const start = call * CALL_TOKENS;
    const length = Math.floor(Math.min(CALL_TOKENS, lossMask.length - start) * SAMPLED_SHARE);
    lossMask.fill(1, start, start + length);
    for (let i = start; i < start + length; i++) logprobs[i] = Math.log(1 - random());
    return { callId: `call-${index}-${call}`, start, length, finishReason: 'tool_calls', policyVersion: 7n };
  });
  const trace = {
    promptIds: packIds(ids.slice(0, prompt)),
    responseIds: packIds(ids.slice(prompt)),
    lossMask,
    logprobs: packFloats(logprobs),
    spans,
  };
  const sessionId = `s-${tokens}-${index}`;
  return create(TrajectorySchema, { sessionId, traces: [trace], policyVersionMin: 7n, policyVersionMax: 7n });
}

export const bytesOf = (trajectory: Trajectory): Uint8Array => toBinary(TrajectorySchema, trajectory);
