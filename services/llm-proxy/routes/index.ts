// The llm-proxy's RPCs, one file each.
import type { ConnectRouter } from '@connectrpc/connect';
import { ProxyService } from '../../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { PolicyService } from '../../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import type { LlmProxyContext } from '../context.ts';
import { closeSession } from './close-session.ts';
import { drainEngine } from './drain-engine.ts';
import { getPolicy } from './get-policy.ts';
import { listEngines } from './list-engines.ts';
import { pause } from './pause.ts';
import { publishVersion } from './publish-version.ts';
import { resume } from './resume.ts';

export function routes(router: ConnectRouter, ctx: LlmProxyContext): void {
  router.service(ProxyService, { ...closeSession(ctx), ...listEngines(ctx), ...drainEngine(ctx) });
  router.service(PolicyService, {
    ...publishVersion(ctx),
    ...pause(ctx),
    ...resume(ctx),
    ...getPolicy(ctx),
  });
}
