// LimitExec: the limit of the running command, counted anew.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { EXEC_TIMEOUT_MAX_MS } from '../../common/limits.ts';
import type { RuntimePrewarmContext } from '../context.ts';
import { durationBetween, invalid } from '../domain/messages.ts';

export function limitExec(ctx: RuntimePrewarmContext): Pick<ServiceImpl<typeof RuntimeService>, 'limitExec'> {
  return {
    limitExec({ runtimeId, timeout }) {
      if (timeout === undefined) throw invalid('timeout', 'must be set');
      const ms = durationBetween('timeout', timeout, EXEC_TIMEOUT_MAX_MS, 1, EXEC_TIMEOUT_MAX_MS);
      return { running: ctx.runtimes.get(runtimeId).limit(ms) };
    },
  };
}
