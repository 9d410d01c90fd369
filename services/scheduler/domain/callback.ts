// What a callback tells: that a task's group is announced, and how its sessions ended.
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { CALLBACK_SESSIONS_MAX } from '../../common/limits.ts';
import { groupIdOf, Outcome, sessionOf } from './session.ts';
import type { TaskState } from './state.ts';
import { taskView } from './view.ts';

/** The same for every try, so that a receiver can tell what it has seen. */
export const callbackId = ({ record, round }: TaskState): string => `${record.taskId}:${groupIdOf(round)}`;

/** JSON in the names of the API; to be made when the group is announced. */
export function callbackBody(task: TaskState): string {
  const { taskId, groupId, endTime, sessionsByOutcome, meanReward } = taskView(task);
  const sessions = task.sessions
    .filter((record) => record !== undefined)
    .map(sessionOf)
    .filter((session) => session.groupId === groupId);
  return JSON.stringify({
    id: callbackId(task),
    type: 'task.ended',
    task_id: taskId,
    group_id: groupId,
    end_time: endTime && timestampDate(endTime).toISOString(),
    sessions_by_outcome: sessionsByOutcome,
    mean_reward: meanReward,
    num_sessions: sessions.length,
    sessions: sessions.slice(0, CALLBACK_SESSIONS_MAX).map((session) => ({
      session_id: session.sessionId,
      sample_index: session.sampleIndex,
      outcome: Outcome[session.outcome].toLowerCase(),
      reward: session.reward,
      reason: session.failure?.reason,
      attempt: session.attempt,
    })),
  });
}
