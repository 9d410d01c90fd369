// The announcement of a finished group.
import { create } from '@bufbuild/protobuf';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import {
  type GroupReady,
  GroupReadySchema,
  type SessionResult,
  SessionResultSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { carriedOverFrom } from './rounds.ts';
import { groupIdOf, sessionOf } from './session.ts';
import type { TaskState } from './state.ts';

type Announced = Pick<TaskState, 'record' | 'spec' | 'sessions' | 'round'>;

/** All sessions of a group of a task, by sample index; those without a trajectory with their failure. */
export function groupReady(task: Announced, readyMs: number, round = task.round): GroupReady {
  const { record, spec, sessions } = task;
  const groupId = groupIdOf(round);
  return create(GroupReadySchema, {
    taskId: record.taskId,
    groupId,
    sessions: sessions
      .filter((one) => one !== undefined)
      .filter((one) => sessionOf(one).groupId === groupId)
      .map(resultOf),
    ...(spec.metadata && { metadata: spec.metadata }),
    readyMs: BigInt(readyMs),
    carriedOverSessions: carriedOverFrom(task, round),
  });
}

function resultOf(record: SessionRecord): SessionResult {
  const { sessionId, sampleIndex, attempt, outcome, failure, reward, stats } = sessionOf(record);
  const { built, evaluated, graded } = record;
  return create(SessionResultSchema, {
    sessionId,
    sampleIndex,
    attempt,
    outcome,
    ...(failure && { failure }),
    ...(reward !== undefined && { reward, traceRewards: evaluated?.traceRewards ?? [] }),
    ...(built?.trajectory && { trajectory: built.trajectory }),
    ...(stats && { stats }),
    ...(evaluated?.evaluation && { evaluation: evaluated.evaluation }),
    ...(graded && { graded }),
  });
}
