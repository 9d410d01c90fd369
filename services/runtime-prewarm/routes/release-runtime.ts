// ReleaseRuntime: the end of a lease.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import type { RuntimePrewarmContext } from '../context.ts';

export function releaseRuntime(
  ctx: RuntimePrewarmContext,
): Pick<ServiceImpl<typeof RuntimeService>, 'releaseRuntime'> {
  return {
    async releaseRuntime({ runtimeId }) {
      await ctx.runtimes.release(runtimeId);
      return {};
    },
  };
}
