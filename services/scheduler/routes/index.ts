// The scheduler's RPCs, one file each.
import type { ConnectRouter } from '@connectrpc/connect';
import { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { SchedulerContext } from '../context.ts';
import { cancelTask } from './cancel-task.ts';
import { getSession } from './get-session.ts';
import { getTask } from './get-task.ts';
import { listNodes } from './list-nodes.ts';
import { listSessions } from './list-sessions.ts';
import { listTasks } from './list-tasks.ts';
import { submitTask } from './submit-task.ts';
import { watchTask } from './watch-task.ts';

export function routes(router: ConnectRouter, ctx: SchedulerContext): void {
  router.service(RolloutService, {
    ...submitTask(ctx),
    ...getTask(ctx),
    ...listTasks(ctx),
    ...getSession(ctx),
    ...listSessions(ctx),
    ...watchTask(ctx),
    ...cancelTask(ctx),
    ...listNodes(ctx),
  });
}
