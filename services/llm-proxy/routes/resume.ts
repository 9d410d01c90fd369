// Resume: calls go on, with a new version if one is given.
import type { ServiceImpl } from '@connectrpc/connect';
import type { PolicyService } from '../../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { LlmProxyContext } from '../context.ts';

export function resume(ctx: LlmProxyContext): Pick<ServiceImpl<typeof PolicyService>, 'resume'> {
  return {
    async resume({ pauseId, policyVersion, weightVersion }, { signal }) {
      if (policyVersion === 0n && weightVersion !== '') throw withoutNumber();
      const version = policyVersion === 0n ? undefined : { policyVersion, weightVersion };
      const { policy } = await ctx.policies.resume(pauseId, version, signal);
      return { policy };
    },
  };
}

/** Else the word would be passed over. */
function withoutNumber(): PolarError {
  const fields = [{ field: 'policy_version', description: 'is needed with weight_version' }];
  return new PolarError('INVALID_REQUEST', 'policy_version is needed with weight_version', { fields });
}
