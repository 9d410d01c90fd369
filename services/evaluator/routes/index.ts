// The evaluator's RPCs, one file each.
import type { ConnectRouter } from '@connectrpc/connect';
import { EvaluatorService } from '../../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import type { EvaluatorContext } from '../context.ts';
import { evaluateSession } from './evaluate-session.ts';
import { listEvaluators } from './list-evaluators.ts';

export function routes(router: ConnectRouter, ctx: EvaluatorContext): void {
  router.service(EvaluatorService, { ...listEvaluators, ...evaluateSession(ctx) });
}
