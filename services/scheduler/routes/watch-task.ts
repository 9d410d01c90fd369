// WatchTask: the present state of every session, then every change, until all have ended.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { STREAM_PROGRESS_MS } from '../../common/limits.ts';
import type { SchedulerContext } from '../context.ts';
import { taskOf } from '../domain/lookup.ts';
import { sessionOf } from '../domain/session.ts';
import { allEnded } from '../domain/state.ts';
import { taskView } from '../domain/view.ts';

export function watchTask({
  board,
  watchers,
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'watchTask'> {
  return {
    async *watchTask({ taskId }, { signal }) {
      const task = taskOf(board.state, taskId);
      const watcher = watchers.open(taskId);
      try {
        // Taken in one turn, before any change that the watcher gets.
        const present = task.sessions.map((_, i) => sessionOf(board.state.session(task, i)));
        for (const session of present) yield { session, task: taskView(task) };
        while (!signal.aborted) {
          const ended = allEnded(task);
          const changes = await watcher.next(ended ? 0 : STREAM_PROGRESS_MS, signal);
          for (const session of changes) yield { session, task: taskView(task) };
          if (ended && changes.length === 0) return;
          if (changes.length === 0 && !signal.aborted) yield {};
        }
      } finally {
        watchers.close(taskId, watcher);
      }
    },
  };
}
