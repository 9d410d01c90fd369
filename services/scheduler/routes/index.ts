// The scheduler's RPCs, one file each.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { SchedulerContext } from '../context.ts';
import { cancelSession } from './cancel-session.ts';
import { cancelTask } from './cancel-task.ts';
import { closeSession } from './close-session.ts';
import { drainNode } from './drain-node.ts';
import { getSession } from './get-session.ts';
import { getTask } from './get-task.ts';
import { getTaskSpec } from './get-task-spec.ts';
import { listNodes } from './list-nodes.ts';
import { listQueues } from './list-queues.ts';
import { listSessions } from './list-sessions.ts';
import { listTasks } from './list-tasks.ts';
import { openSession } from './open-session.ts';
import { renewSession } from './renew-session.ts';
import { retrySessions } from './retry-sessions.ts';
import { submitTask } from './submit-task.ts';
import { submitTasks } from './submit-tasks.ts';
import { watchTask } from './watch-task.ts';

export function rolloutService(ctx: SchedulerContext): ServiceImpl<typeof RolloutService> {
  return {
    ...submitTask(ctx),
    ...submitTasks(ctx),
    ...getTask(ctx),
    ...listTasks(ctx),
    ...getSession(ctx),
    ...listSessions(ctx),
    ...watchTask(ctx),
    ...cancelTask(ctx),
    ...listNodes(ctx),
    ...cancelSession(ctx),
    ...retrySessions(ctx),
    ...listQueues(ctx),
    ...drainNode(ctx),
    ...openSession(ctx),
    ...renewSession(ctx),
    ...closeSession(ctx),
    ...getTaskSpec(ctx),
  };
}
