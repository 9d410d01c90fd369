// The evaluator's RPCs, one file each.
import type { ConnectRouter } from '@connectrpc/connect';
import { EvaluatorService } from '../../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { listEvaluators } from './list-evaluators.ts';

export function routes(router: ConnectRouter): void {
  router.service(EvaluatorService, { ...listEvaluators });
}
