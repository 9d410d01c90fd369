// CancelTask: ends every session that has not ended; answers when that is committed. A task that is not there yet can be
// cancelled ahead: then its submit is refused.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import { TASK_ID_PATTERN } from '../../common/ids.ts';
import { TOMBSTONE_MS } from '../../common/limits.ts';
import { archivedView } from '../archive/lookup.ts';
import { whole } from '../archive/whole.ts';
import type { SchedulerContext } from '../context.ts';
import { unixMs } from '../dispatch/clock.ts';
import { invalid } from '../domain/lookup.ts';
import { cancelled, isEnded } from '../domain/session.ts';
import { type TaskState, tombstoneChange } from '../domain/state.ts';
import { taskView } from '../domain/view.ts';
import * as events from '../events.ts';

export function cancelTask(ctx: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'cancelTask'> {
  const { board } = ctx;
  return {
    async cancelTask({ taskId, ahead }) {
      board.journal.admit();
      await whole(ctx, board.state.tasks.get(taskId));
      const archived = board.state.tasks.has(taskId) ? undefined : await ctx.archive.task(taskId);
      if (archived !== undefined) return { task: archivedView(archived) };
      if (ahead && board.state.tasks.get(taskId) === undefined) await cancelAhead(ctx, taskId);
      const task = board.state.tasks.get(taskId);
      if (task === undefined && ahead) return {};
      if (task === undefined) throw new PolarError('NOT_FOUND', `there is no task ${taskId}`);
      await cancelAll(ctx, task);
      return { task: taskView(task) };
    },
  };
}

/** A submit that is on its way either sees this, or its task is in the log when this returns. */
async function cancelAhead({ board: { journal }, log }: SchedulerContext, taskId: string): Promise<void> {
  if (!TASK_ID_PATTERN.test(taskId)) throw invalid('task_id', 'is none that a task can have');
  const buried = journal.propose(tombstoneChange(taskId, unixMs() + TOMBSTONE_MS));
  await journal.within(buried.then(() => journal.settled()));
  events.taskCancelledAhead(log, taskId);
}

async function cancelAll({ board, log }: SchedulerContext, task: TaskState): Promise<void> {
  const nowMs = unixMs();
  const live = task.sessions
    .map((_, i) => ({ task, record: board.journal.latest(task, i) }))
    .filter(({ record }) => !isEnded(record));
  const changes = live.map((found) => board.change(found, cancelled(found.record, nowMs)));
  await board.journal.within(Promise.all([...changes, board.journal.settled()]).then(() => {}));
  if (live.length > 0) events.taskCancelled(log, task, live.length);
}
