// GetPolicy: what holds now, and what each proxy is doing.
import type { ServiceImpl } from '@connectrpc/connect';
import type { PolicyService } from '../../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import type { LlmProxyContext } from '../context.ts';

export function getPolicy(ctx: LlmProxyContext): Pick<ServiceImpl<typeof PolicyService>, 'getPolicy'> {
  return {
    getPolicy() {
      const proxies = ctx.policies.peers.map((peer) => ({ ...peer, revision: BigInt(peer.revision) }));
      return { policy: ctx.policies.state.policy, proxies };
    },
  };
}
