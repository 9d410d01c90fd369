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
import { judge } from './filter.ts';
import { tokensOf } from './stored.ts';
import { rewardsIn } from './trace-rewards.ts';

/** What a stream may send, if the cursor admits it. */
export interface Offer extends Omit<Candidate, 'storedMs'> {
  readonly batch: TrajectoryBatch;
}

/** Leaves out, and names, what the filter drops at this policy version. */
export function offerOf(
  batch: TrajectoryBatch,
  filter: StreamFilter | undefined,
  policyVersion: bigint,
): Offer {
  const { batchId, trajectories } = batch;
  const sessions = trajectories.map((trajectory) => ({
    reward: trajectory.reward,
    traceRewards: () => rewardsIn(trajectory),
    policyVersionMin: trajectory.policyVersionMin,
    policyVersionMax: trajectory.policyVersionMax,
    tokens: tokensOf(trajectory),
  }));
  const verdict = judge(filter, policyVersion, sessions);
  const droppedReason = verdict.group;
  const reasons = verdict.sessions;
  const droppedSessions: Record<string, number> = {};
  for (const reason of reasons) {
    if (reason !== '') droppedSessions[reason] = (droppedSessions[reason] ?? 0) + 1;
  }
  const isWhole = droppedReason === '' && reasons.every((reason) => reason === '');
  const left = trajectories.map((trajectory, index) => {
    const reason = reasons[index] ?? '';
    const isKept = droppedReason === '' && reason === '';
    return isKept ? trajectory : withoutTraces(trajectory, reason);
  });
  return {
    batchId,
    batch: isWhole ? batch : create(TrajectoryBatchSchema, { ...batch, trajectories: left }),
    tokens: verdict.tokens,
    droppedReason,
    droppedSessions,
  };
}

/** Stored traces are among what is unknown. */
function withoutTraces({ $unknown: _, ...head }: Trajectory, droppedReason: string): Trajectory {
  return create(TrajectorySchema, { ...head, traces: [], droppedReason });
}
