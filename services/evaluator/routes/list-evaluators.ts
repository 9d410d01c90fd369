// ListEvaluators: what EvaluatorSpec.strategy may name.
import type { ServiceImpl } from '@connectrpc/connect';
import type { EvaluatorService } from '../../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { evaluators } from '../evaluators/index.ts';

export const listEvaluators: Pick<ServiceImpl<typeof EvaluatorService>, 'listEvaluators'> = {
  listEvaluators: async () => ({ evaluators: evaluators.map(({ name, summary }) => ({ name, summary })) }),
};
