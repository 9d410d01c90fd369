// SubmitTask: checks, commits, answers.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { allowedBy, readSubmission } from '../admission/submission.ts';
import type { SchedulerContext } from '../context.ts';

export function submitTask(ctx: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'submitTask'> {
  return {
    async submitTask(request) {
      const { submission, faults } = readSubmission(request, allowedBy(ctx));
      if (faults.length > 0) throw faulty('INVALID_TASK', 'the task', faults);
      const [submitted] = await ctx.admission.submit([submission]);
      return { ...submitted };
    },
  };
}
