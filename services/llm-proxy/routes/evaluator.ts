// The node's evaluator, for callers elsewhere. It runs commands for whoever may submit tasks, which this service may not: it
// is asked with the caller's own token.
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import type { EvaluatorService } from '../../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { EVALUATE_AGAIN_MS } from '../../common/limits.ts';
import type { LlmProxyContext } from '../context.ts';

export const evaluatorRoutes = ({ evaluator }: LlmProxyContext): ServiceImpl<typeof EvaluatorService> => ({
  listEvaluators: (request, context) => evaluator.listEvaluators(request, asCaller(context)),
  evaluateSession: (request, context) =>
    evaluator.evaluateSession(request, { ...asCaller(context), timeoutMs: EVALUATE_AGAIN_MS }),
});

function asCaller({ signal, requestHeader }: HandlerContext) {
  const authorization = requestHeader.get('authorization');
  return { signal, ...(authorization !== null && { headers: { authorization } }) };
}
