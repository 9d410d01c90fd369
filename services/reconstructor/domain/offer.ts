// A batch as a filter leaves it.
import { create } from '@bufbuild/protobuf';
import type { StreamFilter } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  type Trajectory,
  type TrajectoryBatch,
  TrajectoryBatchSchema,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import type { Candidate } from './admission.ts';
import { judge, type SessionView } from './filter.ts';
import { type Packed, unpacked } from './packed.ts';
import { tokensOf } from './stored.ts';
import { rewardsIn } from './trace-rewards.ts';

/** What a stream may send, if the cursor admits it. */
export interface Offer extends Omit<Candidate, 'storedMs'>, Offered {}

/** A batch that is there. */
export interface Offered {
  /** Of one that is packed its id alone. */
  readonly batch: TrajectoryBatch;
  readonly packed?: Packed;
}

/** Leaves out, and names, what the filter drops at this policy version. */
export function offerOf(
  { batch, packed }: Offered,
  filter: StreamFilter | undefined,
  policyVersion: bigint,
): Offer {
  const { batchId } = batch;
  if (packed !== undefined && filter === undefined) {
    return { batchId, batch, packed, tokens: packed.tokens, droppedReason: '', droppedSessions: {} };
  }
  const view = packed?.view() ?? { taskId: batch.taskId, sessions: batch.trajectories.map(viewOf) };
  const verdict = judge(filter, policyVersion, view);
  const droppedReason = verdict.group;
  const reasons = verdict.sessions;
  const droppedSessions: Record<string, number> = {};
  for (const reason of reasons) {
    if (reason !== '') droppedSessions[reason] = (droppedSessions[reason] ?? 0) + 1;
  }
  const isWhole = droppedReason === '' && reasons.every((reason) => reason === '');
  const offer = { batchId, tokens: verdict.tokens, droppedReason, droppedSessions };
  if (isWhole) return { ...offer, batch, ...(packed && { packed }) };
  const whole = packed === undefined ? batch : unpacked(packed.body);
  const left = whole.trajectories.map((trajectory, index) => {
    const reason = reasons[index] ?? '';
    const isKept = droppedReason === '' && reason === '';
    return isKept ? trajectory : withoutTraces(trajectory, reason);
  });
  return { ...offer, batch: create(TrajectoryBatchSchema, { ...whole, batchId, trajectories: left }) };
}

const viewOf = (trajectory: Trajectory): SessionView => ({
  reward: trajectory.reward,
  traceRewards: () => rewardsIn(trajectory),
  policyVersionMin: trajectory.policyVersionMin,
  policyVersionMax: trajectory.policyVersionMax,
  tokens: tokensOf(trajectory),
});

/** Stored traces are among what is unknown. */
function withoutTraces({ $unknown: _, ...head }: Trajectory, droppedReason: string): Trajectory {
  return create(TrajectorySchema, { ...head, traces: [], droppedReason });
}
