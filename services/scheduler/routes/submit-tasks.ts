// SubmitTasks: checks all tasks, commits all that are new at once, answers.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { allowedBy, readBatch } from '../admission/submission.ts';
import type { SchedulerContext } from '../context.ts';

export function submitTasks(ctx: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'submitTasks'> {
  return {
    async submitTasks({ tasks }) {
      const { submissions, faults } = readBatch(tasks, allowedBy(ctx));
      if (faults.length > 0) throw faulty('INVALID_TASK', 'the batch', faults);
      return { tasks: await ctx.admission.submit(submissions) };
    },
  };
}
