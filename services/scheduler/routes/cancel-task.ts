// CancelTask: ends every session that has not ended; answers when that is committed.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { SchedulerContext } from '../context.ts';
import { taskOf } from '../domain/lookup.ts';
import { cancelled, isEnded } from '../domain/session.ts';
import { taskView } from '../domain/view.ts';
import * as events from '../events.ts';

export function cancelTask({
  board,
  log,
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'cancelTask'> {
  return {
    async cancelTask({ taskId }) {
      const task = taskOf(board.state, taskId);
      board.journal.admit();
      const nowMs = Date.now();
      const live = task.sessions
        .map((_, i) => ({ task, record: board.journal.latest(task, i) }))
        .filter(({ record }) => !isEnded(record));
      const changes = live.map((found) => board.change(found, cancelled(found.record, nowMs)));
      await board.journal.within(Promise.all([...changes, board.journal.settled()]).then(() => {}));
      if (live.length > 0) events.taskCancelled(log, task, live.length);
      return { task: taskView(task) };
    },
  };
}
