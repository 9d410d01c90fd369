// RetrySessions: gives ended sessions of a task new attempts; answers when that is committed. A task that is in the archive
// comes back into memory for it.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RetryOnly, RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { RPC_TIMEOUT_MS } from '../../common/limits.ts';
import { archivedChanges } from '../archive/lookup.ts';
import type { SchedulerContext } from '../context.ts';
import type { Board } from '../dispatch/board.ts';
import { unixMs } from '../dispatch/clock.ts';
import { checkAttempts } from '../domain/attempts.ts';
import { taskOf } from '../domain/lookup.ts';
import { goesAgain } from '../domain/retry.ts';
import { isAnnounced } from '../domain/rounds.ts';
import { groupIdOf, isEnded, retried, sessionOf } from '../domain/session.ts';
import { isTorn, type TaskState } from '../domain/state.ts';
import { taskView } from '../domain/view.ts';
import * as events from '../events.ts';

const LOOK_MS = 20;

export function retrySessions(
  ctx: SchedulerContext,
): Pick<ServiceImpl<typeof RolloutService>, 'retrySessions'> {
  return {
    async retrySessions({ taskId, only }) {
      using _ = ctx.archiver.hold(taskId);
      for (;;) {
        const task = await inMemory(ctx, taskId);
        await takesMore(ctx, task);
        const sessionIds = await goAgain(ctx, task, only);
        if (sessionIds === undefined) continue;
        if (sessionIds.length > 0) events.sessionsRetried(ctx.log, task, sessionIds.length);
        return { task: taskView(task), sessionIds };
      }
    },
  };
}

/** The sessions that go again, once that is committed; undefined where the group does not take any by now, or is gone. */
async function goAgain(
  { board }: SchedulerContext,
  task: TaskState,
  only: RetryOnly,
): Promise<string[] | undefined> {
  board.journal.admit();
  if (!isOpen(board, task)) return undefined;
  const nowMs = unixMs();
  const groupId = groupIdOf(isAnnounced(task) ? task.round + 1 : task.round);
  const again = task.sessions
    .map((_, i) => ({ task, record: board.journal.latest(task, i) }))
    .filter(({ record }) => goesAgain(record, only));
  for (const { record } of again) checkAttempts(sessionOf(record));
  const changes = again.map((found) => board.change(found, retried(found.record, groupId, nowMs)));
  await board.journal.within(Promise.all([...changes, board.journal.settled()]).then(() => {}));
  return again.map(({ record }) => sessionOf(record).sessionId);
}

/** Throws NOT_FOUND, or LIVE_SESSIONS_LIMIT where it cannot come back. */
async function inMemory({ board, archive, room }: SchedulerContext, taskId: string): Promise<TaskState> {
  const { state, journal } = board;
  if (!state.tasks.has(taskId)) {
    const changes = await archivedChanges(archive, taskId);
    // Another call may have brought it back, and its sessions may be under way.
    if (changes !== undefined && !state.tasks.has(taskId)) {
      await journal.within(room.hold(changes.flat(), () => journal.proposeParts(changes)));
    }
  }
  return taskOf(state, taskId);
}

/** Waits until sessions of a task can go again, or it has gone to the archive: that was proposed before it was held here. */
async function takesMore({ board, signal }: SchedulerContext, task: TaskState): Promise<void> {
  const until = performance.now() + RPC_TIMEOUT_MS;
  for (;;) {
    await board.journal.within(board.journal.settled());
    if (isOpen(board, task) || !isHere(board, task)) return;
    if (signal.aborted || performance.now() > until) {
      const { taskId } = task.record;
      throw new PolarError('NATS_UNAVAILABLE', `the group of ${taskId} is being announced; call again`);
    }
    await sleep(LOOK_MS, signal);
  }
}

/**
 * Whether sessions can be added to a task's group, or to a new one. A group that is complete, be it by ends that are not
 * committed yet, is published any moment; a task that comes back from the archive is to be whole first.
 */
function isOpen(board: Board, task: TaskState): boolean {
  if (!isHere(board, task)) return false;
  if (isAnnounced(task)) return !isTorn(task);
  // One that stragglers have left is published any moment.
  if (task.announcedRounds < task.round) return false;
  return task.sessions.some((_, i) => !isEnded(board.journal.latest(task, i)));
}

const isHere = ({ state }: Board, task: TaskState): boolean => state.tasks.get(task.record.taskId) === task;
