// How sessions ended, and what was built of them, put together for a trainer.
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import {
  type GroupReady,
  GroupReadySchema,
  type SessionResult,
  SessionResultSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import {
  type Trajectory,
  type TrajectoryBatch,
  TrajectoryBatchSchema,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { failureOf, PolarError } from '../../common/errors.ts';
import { BATCH_BYTES_MAX } from '../../common/limits.ts';

/** The batch of a group; `trajectories` are its sessions' by sample index. */
export function batchOf(batchId: number, group: GroupReady, trajectories: Trajectory[]): TrajectoryBatch {
  return create(TrajectoryBatchSchema, {
    batchId: BigInt(batchId),
    taskId: group.taskId,
    groupId: group.groupId,
    trajectories,
    readyTime: timestampFromMs(Number(group.readyMs)),
    carriedOverSessions: group.carriedOverSessions,
    ...(group.metadata !== undefined && { metadata: group.metadata }),
  });
}

/** A session's trajectory: what was built, if anything, under how the session ended. */
export function trajectoryOf(group: GroupReady, result: SessionResult, built?: Trajectory): Trajectory {
  const { sessionId, sampleIndex, attempt, outcome, failure, reward, stats, evaluation } = result;
  return create(TrajectorySchema, {
    ...(built && fieldsOf(built)),
    ...(stats !== undefined && { stats }),
    sessionId,
    taskId: group.taskId,
    groupId: group.groupId,
    sampleIndex,
    attempt,
    outcome,
    ...(failure !== undefined && { failure }),
    ...(reward !== undefined && { reward }),
    ...(evaluation !== undefined && { evaluation }),
  });
}

function fieldsOf(built: Trajectory): Partial<Omit<Trajectory, '$typeName' | '$unknown'>> {
  const { traces, builder, policyVersionMin, policyVersionMax, drift, stats, builderConfig } = built;
  return {
    traces,
    builder,
    policyVersionMin,
    policyVersionMax,
    drift,
    ...(stats !== undefined && { stats }),
    ...(builderConfig !== undefined && { builderConfig }),
  };
}

/** A session whose trajectory cannot be had: typed, without reward, and the rest of its group comes all the same. */
export function withoutTrajectory(group: GroupReady, result: SessionResult, error: unknown): Trajectory {
  const trajectory = trajectoryOf(group, result);
  delete trajectory.reward;
  trajectory.outcome = Outcome.INFRASTRUCTURE_ERROR;
  trajectory.failure = failureOf(error);
  return trajectory;
}

/** Bytes of the trajectories of a group as they are stored. */
export const storedBytes = (group: GroupReady): number =>
  group.sessions.reduce((sum, one) => sum + Number(one.trajectory?.sizeBytes ?? 0n), 0);

/** A group whose trajectories are above the limit, even without routed experts. */
export const batchTooLarge = ({ groupId, taskId }: GroupReady, sizeBytes: number): PolarError =>
  new PolarError(
    'BATCH_TOO_LARGE',
    `the trajectories of group ${groupId} of task ${taskId} have ${sizeBytes} bytes, above BATCH_BYTES_MAX (${BATCH_BYTES_MAX}): submit it with fewer samples; each session can be had with GetTrajectory`,
  );

/** Task and group of a message of the trajectory stream. */
export function namesIn(subject: string): { readonly taskId: string; readonly groupId: string } {
  const [taskId = '', groupId = ''] = subject
    .split('.')
    .slice(-2)
    .map((token) => token.replaceAll('=2e', '.'));
  return { taskId, groupId };
}

/** A group whose own message is gone: its name, and one trajectory that says why there is nothing. */
export function lostGroup(batchId: number, subject: string, error: unknown): TrajectoryBatch {
  const group = create(GroupReadySchema, namesIn(subject));
  return batchOf(batchId, group, [withoutTrajectory(group, create(SessionResultSchema), error)]);
}
