// 1.0 where the harness ended by itself with exit code 0, else 0.0.
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { Evaluator } from './evaluator.ts';

export const sessionCompleted: Evaluator = {
  name: 'session_completed',
  summary: '1.0 if the session is COMPLETED, else 0.0.',
  async evaluate(_ctx, { work }) {
    const completed = work.outcome === Outcome.COMPLETED;
    return { reward: completed ? 1 : 0, evaluation: { completed } };
  },
};
