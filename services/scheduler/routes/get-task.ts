// GetTask: one task.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { SchedulerContext } from '../context.ts';
import { taskOf } from '../domain/lookup.ts';
import { taskView } from '../domain/view.ts';

export function getTask({ board }: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'getTask'> {
  return {
    getTask: ({ taskId }) => ({ task: taskView(taskOf(board.state, taskId)) }),
  };
}
