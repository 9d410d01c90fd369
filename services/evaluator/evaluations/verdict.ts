// One evaluation within its budget.
import { Deadline } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { EVALUATE_GRACE_MS } from '../../common/limits.ts';
import type { EvaluatorContext } from '../context.ts';
import type { Evaluation, Verdict } from '../evaluators/evaluator.ts';
import { evaluatorOf } from '../evaluators/index.ts';

/** The verdict, or why there is none. */
export async function verdictOf(
  ctx: EvaluatorContext,
  given: Omit<Evaluation, 'remainingMs'>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Verdict | PolarError> {
  const until = performance.now() + timeoutMs;
  using deadline = new Deadline(timeoutMs + EVALUATE_GRACE_MS, signal);
  const limited = deadline.signal;
  try {
    const evaluation = { ...given, remainingMs: () => until - performance.now() };
    return await evaluatorOf(given.work.evaluator?.strategy ?? '').evaluate(ctx, evaluation, limited);
  } catch (error) {
    if (!limited.aborted) return asPolarError(error);
    return new PolarError('EVALUATION_TIMEOUT', 'the evaluate budget was spent', { cause: error });
  }
}
