// What the evaluator counts, for `/metrics`.
import { counter, histogram, STAGE_SECONDS } from '../common/metrics.ts';

export const evaluateSeconds = histogram(
  'polar_evaluator_evaluate_seconds',
  'Evaluations that gave a reward.',
  STAGE_SECONDS,
);
export const evaluationsFailed = counter(
  'polar_evaluator_evaluations_failed_total',
  'Evaluations without a reward, by reason.',
  ['reason'],
);
