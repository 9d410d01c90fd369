// GetTaskSpec: what a task asks for, file contents too.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { recordOf } from '../archive/archive.ts';
import { archivedTaskOf } from '../archive/lookup.ts';
import type { SchedulerContext } from '../context.ts';
import { shownTask } from '../domain/lookup.ts';

export const getTaskSpec = (
  ctx: SchedulerContext,
): Pick<ServiceImpl<typeof RolloutService>, 'getTaskSpec'> => ({
  async getTaskSpec({ taskId }, { signal }) {
    const record =
      shownTask(ctx.board.state, taskId)?.record ?? recordOf(await archivedTaskOf(ctx.archive, taskId));
    return { spec: await ctx.specs.load(record, signal) };
  },
});
