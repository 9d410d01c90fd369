// ListQueues: the queues that the topology names or that are in use.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { SchedulerContext } from '../context.ts';
import { queueView } from '../domain/view.ts';

export function listQueues({
  board,
}: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'listQueues'> {
  return {
    listQueues: () => ({ queues: board.queue.shares.all.map(queueView) }),
  };
}
