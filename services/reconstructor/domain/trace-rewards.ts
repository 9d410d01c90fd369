// Rewards of single traces. An evaluator gives them to calls, which every builder keeps; a trace has that of the last of
// its calls that has one.
import { fromBinary } from '@bufbuild/protobuf';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { TraceReward } from '../../../gen/ts/polar/event/v1/work_pb.js';
import {
  CallSpanSchema,
  type Trace,
  TraceSchema,
  type Trajectory,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { contentOf, type StoredTrace, storedTraces } from './stored.ts';

const { reward: REWARD, spans: SPANS } = TraceSchema.field;

type Traces = Pick<Trajectory, 'traces' | '$unknown'>;

/** Sets them on the traces of a trajectory; those that are not decoded (stored.ts) get the field behind what they hold. */
export function rewardTraces<T extends Traces>(trajectory: T, rewards: readonly TraceReward[]): T {
  if (rewards.length === 0) return trajectory;
  const byCall = new Map(rewards.map(({ callId, reward }) => [callId, reward]));
  const rewardOf = (callIds: readonly string[]): number | undefined =>
    byCall.get(callIds.findLast((id) => byCall.has(id)) ?? '');
  for (const trace of trajectory.traces) {
    const reward = rewardOf(trace.spans.map(({ callId }) => callId));
    if (reward !== undefined) trace.reward = reward;
  }
  if (trajectory.$unknown === undefined) return trajectory;
  trajectory.$unknown = storedTraces(trajectory).map((stored): StoredTrace => {
    const reward = rewardOf(callIdsIn(contentOf(stored.data)));
    return reward === undefined ? stored : { ...stored, more: rewardField(reward) };
  });
  return trajectory;
}

/** What each trace counts with: its own reward, else the trajectory's. */
export function rewardsIn(trajectory: Trajectory): number[] {
  const { reward, traces } = trajectory;
  const own = [
    ...traces.map((trace: Trace) => trace.reward),
    ...storedTraces(trajectory).map(({ more }) => more && ownReward(more)),
  ];
  return own.map((one) => one ?? reward).filter((one) => one !== undefined);
}

function callIdsIn(trace: Uint8Array): string[] {
  const reader = new BinaryReader(trace);
  const found: string[] = [];
  while (reader.pos < reader.len) {
    const [no, wireType] = reader.tag();
    if (no === SPANS.number) found.push(fromBinary(CallSpanSchema, reader.bytes()).callId);
    else reader.skip(wireType, no);
  }
  return found;
}

function ownReward(field: Uint8Array): number {
  const reader = new BinaryReader(field);
  reader.tag();
  return reader.double();
}

const rewardField = (reward: number): Uint8Array =>
  new BinaryWriter().tag(REWARD.number, WireType.Bit64).double(reward).finish();
