// EvaluateSession: a session that has ended, graded again; nothing of it changes.
import type { ServiceImpl } from '@connectrpc/connect';
import type { EvaluatorService } from '../../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { EvaluatorContext } from '../context.ts';
import { type Again, againOf } from '../evaluations/again.ts';
import { verdictOf } from '../evaluations/verdict.ts';
import type { Verdict } from '../evaluators/evaluator.ts';
import { evaluatedAgain } from '../events.ts';

export const evaluateSession = (
  ctx: EvaluatorContext,
): Pick<ServiceImpl<typeof EvaluatorService>, 'evaluateSession'> => ({
  async evaluateSession({ sessionId, evaluator }, { signal }) {
    const again = await againOf(ctx, sessionId, evaluator, signal);
    const verdict = await ctx.places.again(() => graded(ctx, again, signal), signal);
    const { attempt, reward: oldReward } = again.session;
    const { reward, evaluation, traceRewards = [] } = verdict;
    return {
      ...{ sessionId, attempt, outcome: again.work.outcome },
      ...(oldReward !== undefined && { oldReward }),
      ...{ reward, evaluation, traceRewards },
    };
  },
});

async function graded(
  ctx: EvaluatorContext,
  { ref, work, stored }: Again,
  signal: AbortSignal,
): Promise<Verdict> {
  const begin = performance.now();
  const given = { ref, work, stored, kept: { outcome: undefined } };
  const verdict = await verdictOf(ctx, given, Number(work.timeoutMs), signal);
  signal.throwIfAborted();
  if (verdict instanceof PolarError) throw verdict;
  const { reward, traceRewards = [] } = verdict;
  if (![{ reward }, ...traceRewards].every((one) => Number.isFinite(one.reward))) {
    throw new PolarError('EVALUATION_FAILED', 'the evaluator gave a reward that is no number');
  }
  evaluatedAgain(ctx.log, ref, { reward, duration_ms: Math.round(performance.now() - begin) });
  return verdict;
}
