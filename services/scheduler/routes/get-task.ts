// GetTask: one task, on request only when all of its sessions have ended.
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { Deadline } from '../../common/clock.ts';
import { LONG_POLL_MAX_MS } from '../../common/limits.ts';
import { archivedTaskOf, archivedView } from '../archive/lookup.ts';
import type { SchedulerContext } from '../context.ts';
import { invalid, shownTask } from '../domain/lookup.ts';
import { allEnded, type TaskState } from '../domain/state.ts';
import { summaryOf, taskView } from '../domain/view.ts';

export function getTask(ctx: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'getTask'> {
  return {
    async getTask({ taskId, wait, summary }, { signal }) {
      const waitMs = wait === undefined ? 0 : durationMs(wait);
      if (waitMs < 0 || waitMs > LONG_POLL_MAX_MS) {
        throw invalid('wait', `must be from 0 to ${LONG_POLL_MAX_MS / 1000} s`);
      }
      const task = shownTask(ctx.board.state, taskId);
      const waiting = task && waitMs > 0;
      if (waiting) await ended(ctx, task, waitMs, AbortSignal.any([signal, ctx.signal]));
      const view = task ? taskView(task) : archivedView(await archivedTaskOf(ctx.archive, taskId));
      return { task: summary ? summaryOf(view) : view };
    },
  };
}

/** Resolves when all sessions have ended, and at the latest after `ms`. */
async function ended(
  { watchers }: SchedulerContext,
  task: TaskState,
  ms: number,
  signal: AbortSignal,
): Promise<void> {
  if (allEnded(task)) return;
  using over = new Deadline(ms, signal);
  const { promise, resolve } = Promise.withResolvers<void>();
  using _ = watchers.atEnd(task.record.taskId, resolve);
  over.signal.addEventListener('abort', () => resolve(), { once: true });
  if (!over.signal.aborted) await promise;
}
