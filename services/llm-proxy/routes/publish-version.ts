// PublishVersion: the version that records carry from now on.
import type { ServiceImpl } from '@connectrpc/connect';
import type { PolicyService } from '../../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import type { LlmProxyContext } from '../context.ts';

export function publishVersion(
  ctx: LlmProxyContext,
): Pick<ServiceImpl<typeof PolicyService>, 'publishVersion'> {
  return {
    async publishVersion({ policyVersion, weightVersion }, { signal }) {
      const { policy } = await ctx.policies.publish({ policyVersion, weightVersion }, signal);
      return { policy };
    },
  };
}
