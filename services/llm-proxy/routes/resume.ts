// Resume: calls go on, with a new version if one is given.
import type { ServiceImpl } from '@connectrpc/connect';
import type { PolicyService } from '../../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import type { LlmProxyContext } from '../context.ts';

export function resume(ctx: LlmProxyContext): Pick<ServiceImpl<typeof PolicyService>, 'resume'> {
  return {
    async resume({ pauseId, policyVersion, weightVersion }, { signal }) {
      const version = policyVersion === 0n ? undefined : { policyVersion, weightVersion };
      const { policy } = await ctx.policies.resume(pauseId, version, signal);
      return { policy };
    },
  };
}
