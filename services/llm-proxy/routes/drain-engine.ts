// DrainEngine: an engine takes no further calls, or takes them again.
import type { ServiceImpl } from '@connectrpc/connect';
import type { ProxyService } from '../../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { LlmProxyContext } from '../context.ts';
import { engineDrained } from '../events.ts';

export function drainEngine(ctx: LlmProxyContext): Pick<ServiceImpl<typeof ProxyService>, 'drainEngine'> {
  return {
    drainEngine({ baseUrl, undo }) {
      if (baseUrl === '') {
        const fields = [{ field: 'base_url', description: 'must be an engine’s address' }];
        throw new PolarError('INVALID_REQUEST', 'base_url must be an engine’s address', { fields });
      }
      const callsInFlight = ctx.engines.drain(baseUrl, !undo);
      engineDrained(ctx.log, baseUrl, !undo);
      return { callsInFlight };
    },
  };
}
