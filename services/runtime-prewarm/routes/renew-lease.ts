// RenewLease: a new expiry.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import type { RuntimePrewarmContext } from '../context.ts';
import { leaseOf, runtimeMessage } from '../domain/messages.ts';

export function renewLease(
  ctx: RuntimePrewarmContext,
): Pick<ServiceImpl<typeof RuntimeService>, 'renewLease'> {
  return {
    renewLease({ runtimeId, ttl }) {
      const runtime = ctx.runtimes.get(runtimeId);
      runtime.lease(leaseOf('ttl', ttl));
      return { runtime: runtimeMessage(runtime, Date.now()) };
    },
  };
}
