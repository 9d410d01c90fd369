// 1.0 where the harness ended by itself with exit code 0, else 0.0. Of whole tasks the scheduler tells it by itself; here it is
// the outcome of others, and what an older scheduler asks for.
import { COMPLETED, completedVerdict } from '../../common/specs/completed.ts';
import type { Evaluator } from './evaluator.ts';

export const sessionCompleted: Evaluator = {
  name: COMPLETED,
  summary: '1.0 if the session is COMPLETED, else 0.0.',
  evaluate: async (_ctx, { work }) => completedVerdict(work.outcome),
};
