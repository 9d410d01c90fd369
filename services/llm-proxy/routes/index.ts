// The llm-proxy's RPCs, one file each.
import type { CallOptions, ConnectRouter, HandlerContext } from '@connectrpc/connect';
import { EvaluatorService } from '../../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { HarnessService } from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { ProxyService } from '../../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { PolicyService } from '../../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { CALL_TIME_MS_MAX } from '../../common/call-time.ts';
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
  // The node's other services listen on the loopback alone: for callers elsewhere they are asked from here.
  const { harnesses, evaluator } = ctx;
  router.service(HarnessService, {
    listHarnesses: (request, { signal }) => harnesses.listHarnesses(request, { signal }),
    getSessionLogs: (request, { signal }) => harnesses.getSessionLogs(request, { signal }),
    listSessionArtifacts: (request, { signal }) => harnesses.listSessionArtifacts(request, { signal }),
    getSessionArtifact: (request, { signal }) => harnesses.getSessionArtifact(request, { signal }),
  });
  router.service(EvaluatorService, {
    listEvaluators: (request, context) => evaluator.listEvaluators(request, asCaller(context)),
    evaluateSession: (request, context) => evaluator.evaluateSession(request, asCaller(context)),
  });
}

/**
 * It runs commands for whoever may submit tasks, which this service may not: it is asked with the caller's own token, and for
 * as long as the caller waits.
 */
function asCaller({ signal, requestHeader }: HandlerContext): CallOptions {
  const authorization = requestHeader.get('authorization');
  return {
    ...{ signal, timeoutMs: CALL_TIME_MS_MAX },
    ...(authorization !== null && { headers: { authorization } }),
  };
}
