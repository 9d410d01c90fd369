// One form for batches, whichever reader got them: ids as integers, 64-bit integers as text, floats as hex bits.
import { Outcome } from '../../gen/ts/polar/common/v1/session_pb.js';
import type {
  Trace,
  TraceExperts,
  Trajectory,
  TrajectoryBatch,
} from '../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';

export interface ReadTrace {
  readonly prompt_ids: readonly number[];
  readonly response_ids: readonly number[];
  readonly loss_mask: readonly number[];
  /** float32 values, big-endian hex, eight digits each. */
  readonly logprobs: string;
  /** Call, start, length, finish reason, policy version. */
  readonly spans: readonly (readonly [string, number, number, string, string])[];
  /** Layers, experts of an id, bytes of an expert, rows and which are known as hex. */
  readonly experts: readonly [number, number, number, string, string] | null;
}

export interface ReadTrajectory {
  readonly session_id: string;
  readonly sample_index: number;
  readonly attempt: number;
  readonly outcome: string;
  readonly failure: string | null;
  /** float64, big-endian hex. */
  readonly reward: string | null;
  readonly policy_versions: readonly [string, string];
  readonly traces: readonly ReadTrace[];
}

export interface ReadBatch {
  readonly batch_id: string;
  readonly task_id: string;
  readonly group_id: string;
  readonly redelivered: boolean;
  readonly trajectories: readonly ReadTrajectory[];
}

/** int32[] of little-endian bytes, by DataView: nothing of services/common is used here. */
export function ints(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.byteLength / 4 }, (_, i) => view.getInt32(i * 4, true));
}

/** Little-endian float32 bytes as big-endian hex: no number is made of them, so that every NaN keeps its bits. */
export function floatBits(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.byteLength / 4 }, (_, i) =>
    view
      .getUint32(i * 4, true)
      .toString(16)
      .padStart(8, '0'),
  ).join('');
}

/** A float64 as big-endian hex. */
export function doubleBits(value: number): string {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes.toString('hex');
}

export function readMessage(batch: TrajectoryBatch): ReadBatch {
  return {
    batch_id: String(batch.batchId),
    task_id: batch.taskId,
    group_id: batch.groupId,
    redelivered: batch.redelivered,
    trajectories: batch.trajectories.map(trajectory),
  };
}

function trajectory(one: Trajectory): ReadTrajectory {
  return {
    session_id: one.sessionId,
    sample_index: one.sampleIndex,
    attempt: one.attempt,
    outcome: Outcome[one.outcome].toLowerCase(),
    failure: one.failure === undefined ? null : one.failure.reason,
    reward: one.reward === undefined ? null : doubleBits(one.reward),
    policy_versions: [String(one.policyVersionMin), String(one.policyVersionMax)],
    traces: one.traces.map(trace),
  };
}

const experts = (one: TraceExperts): ReadTrace['experts'] => [
  one.layers,
  one.topK,
  one.itemBytes,
  Buffer.from(one.rows).toString('hex'),
  Buffer.from(one.known).toString('hex'),
];

function trace(one: Trace): ReadTrace {
  return {
    prompt_ids: ints(one.promptIds),
    response_ids: ints(one.responseIds),
    loss_mask: [...one.lossMask],
    logprobs: floatBits(one.logprobs),
    spans: one.spans.map((span) => [
      span.callId,
      span.start,
      span.length,
      span.finishReason,
      String(span.policyVersion),
    ]),
    experts: one.routedExperts === undefined ? null : experts(one.routedExperts),
  };
}
