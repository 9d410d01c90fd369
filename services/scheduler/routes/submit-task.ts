// SubmitTask: checks, commits, answers.
import { create } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { TaskSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import type { RolloutService } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { REQUEST_ID_CHARS_MAX } from '../../common/limits.ts';
import { checkTaskSpec, completeTaskSpec } from '../../common/specs/task-spec.ts';
import type { SchedulerContext } from '../context.ts';
import { sessionIdOf } from '../domain/session.ts';

export function submitTask(ctx: SchedulerContext): Pick<ServiceImpl<typeof RolloutService>, 'submitTask'> {
  return {
    async submitTask({ spec: given, requestId }) {
      const spec = completeTaskSpec(given ?? create(TaskSpecSchema));
      const faults = checkTaskSpec(spec);
      if (requestId.length > REQUEST_ID_CHARS_MAX) {
        const description = `must be at most ${REQUEST_ID_CHARS_MAX} characters`;
        faults.push({ field: 'request_id', description });
      }
      if (faults.length > 0) throw faulty('INVALID_TASK', 'the task', faults);
      const { task, sessionPrefix } = await ctx.admission.submit(spec, requestId);
      const { numSamples } = spec;
      const sessionIds = Array.from({ length: numSamples }, (_, i) => sessionIdOf(sessionPrefix, i));
      return { task, sessionIds };
    },
  };
}
