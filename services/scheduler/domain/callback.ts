// What a callback tells: that a task's group is announced, and how its sessions ended.
import { CALLBACK_SESSIONS_MAX } from '../../common/limits.ts';
import { carriedOverFrom } from './rounds.ts';
import { groupIdOf, Outcome, sessionOf } from './session.ts';
import type { TaskState } from './state.ts';

/** The same for every try, so that a receiver can tell what it has seen. */
export const callbackId = (taskId: string, groupId: string): string => `${taskId}:${groupId}`;

/** Of a task's group, JSON in the names of the API; to be made when it is announced. */
export function callbackBody(task: TaskState, round = task.round): string {
  const { record, endMs } = task;
  const { taskId } = record;
  const groupId = groupIdOf(round);
  const sessions = task.sessions
    .filter((record) => record !== undefined)
    .map(sessionOf)
    .filter((session) => session.groupId === groupId);
  const carriedOver = carriedOverFrom(task, round);
  const byOutcome = Map.groupBy(sessions, ({ outcome }) => nameOf(outcome));
  const rewards = sessions.map(({ reward }) => reward).filter((reward) => reward !== undefined);
  return JSON.stringify({
    id: callbackId(taskId, groupId),
    type: 'task.ended',
    task_id: taskId,
    group_id: groupId,
    end_time: new Date(endMs).toISOString(),
    sessions_by_outcome: Object.fromEntries([...byOutcome].map(([name, all]) => [name, all.length])),
    mean_reward: rewards.length > 0 ? rewards.reduce((a, b) => a + b, 0) / rewards.length : undefined,
    num_sessions: sessions.length,
    carried_over_sessions: carriedOver > 0 ? carriedOver : undefined,
    sessions: sessions.slice(0, CALLBACK_SESSIONS_MAX).map((session) => ({
      session_id: session.sessionId,
      sample_index: session.sampleIndex,
      outcome: nameOf(session.outcome),
      reward: session.reward,
      reason: session.failure?.reason,
      attempt: session.attempt,
    })),
  });
}

const nameOf = (outcome: Outcome): string => Outcome[outcome].toLowerCase();
