// The groups of a task: `g0` at first, one more for each round of retries, and one for what is carried over.
import { Stragglers } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { isEnded, roundOf, SessionState, sessionOf } from './session.ts';
import type { TaskState } from './state.ts';

type Rounds = Pick<TaskState, 'round' | 'announcedRounds'>;

/** Whether every group of a task so far is announced. */
export const isAnnounced = ({ round, announcedRounds }: Rounds): boolean => announcedRounds > round;

export const carriesOver = ({ spec }: Pick<TaskState, 'spec'>): boolean =>
  spec.earlyStop?.stragglers === Stragglers.CARRY_OVER;

/** Groups that are announced by the time that one of `round` is there: only stragglers leave a group before that. */
export const announcedBefore = (task: Pick<TaskState, 'spec'>, round: number): number =>
  carriesOver(task) ? Math.max(0, round - 1) : round;

/** The round whose group has ended and is announced next; undefined where there is none. */
export function endedRound(task: TaskState): number | undefined {
  const { round, announcedRounds, sessions, byState, record } = task;
  if (isAnnounced(task)) return undefined;
  const isLive = (one: SessionRecord | undefined): boolean =>
    one === undefined || (!inLater(one, announcedRounds) && !isEnded(one));
  // The groups before the present one have ended, unless it took sessions of the one before. These leave it one by one by
  // their index: the last one tells it soonest.
  const hasEnded =
    announcedRounds === round
      ? byState.get(SessionState.ENDED) === record.numSamples
      : sessions.findLastIndex(isLive) < 0;
  return hasEnded ? announcedRounds : undefined;
}

export const inLater = (record: SessionRecord, round: number): boolean =>
  roundOf(sessionOf(record).groupId) > round;

/** Sessions that left the group of a round before it was announced, and have a later one. */
export const carriedOverFrom = (task: Pick<TaskState, 'spec' | 'sessions'>, round: number): number =>
  carriesOver(task) && round === 0
    ? task.sessions.filter((one) => one !== undefined && inLater(one, round)).length
    : 0;
