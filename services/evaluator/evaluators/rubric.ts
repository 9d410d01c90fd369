// A judge model scores the session's conversations by a rubric: each of them moves the reward of its traces.
import type { JsonObject } from '@bufbuild/protobuf';
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { EVALUATION_BYTES_MAX } from '../../common/limits.ts';
import { listed } from '../../common/specs/catalogue.ts';
import { type RubricConfig, rubricSchemaOf } from '../../common/specs/strategies.ts';
import type { EvaluatorContext } from '../context.ts';
import { bounded } from '../domain/evaluation.ts';
import { SCORE_MAX } from '../domain/judge-prompt.ts';
import { conversationsOf } from '../domain/judged.ts';
import type { Judge } from '../judges/judge.ts';
import { type Scored, scoresOf } from '../judges/scores.ts';
import { recordsOf } from './call-records.ts';
import { checkRewarded, type Evaluation, type Evaluator } from './evaluator.ts';

/** The evaluator, with those that may find the outcome, by name. */
export function rubricOver(outcomeBy: (name: string) => Pick<Evaluator, 'evaluate'>): Evaluator {
  return {
    name: 'rubric',
    summary:
      "Asks a judge model to score the session's conversations by a rubric: traces are rewarded outcome + coefficient * score / 5.",
    async evaluate(ctx, evaluation, signal) {
      const config = configOf(evaluation);
      const judge = judgeOf(ctx, config.judge);
      const { kept } = evaluation;
      const { strategy } = config.outcome;
      kept.outcome ??= await outcomeBy(strategy).evaluate(ctx, withOutcome(evaluation, config), signal);
      const verdict = kept.outcome;
      const conversations = conversationsOf(await recordsOf(ctx, evaluation, signal));
      checkRewarded(conversations.reduce((sum, { callIds }) => sum + callIds.length, 0));
      const { work, remainingMs } = evaluation;
      const { instruction } = work;
      const session = { instruction, outcome: verdict.reward, conversations, remainingMs };
      const scored = await scoresOf(judge, config, session, signal);
      const scores = scored.map(toldOf);
      const told = { ...verdict.evaluation, judge: judge.name, judge_model: judge.model, scores };
      return {
        reward: verdict.reward,
        evaluation: bounded(told, EVALUATION_BYTES_MAX),
        traceRewards: scored.flatMap(({ callIds, score }) => {
          const reward = verdict.reward + (config.rubric_coefficient * score) / SCORE_MAX;
          return callIds.map((callId) => ({ callId, reward }));
        }),
      };
    },
  };
}

const configOf = ({ work }: Evaluation): RubricConfig =>
  checkStrict(
    rubricSchemaOf(work.evaluator?.config),
    work.evaluator?.config ?? {},
    'evaluator.config',
    'INVALID_TASK',
  );

const toldOf = ({ callIds, score }: Scored): JsonObject => ({
  call_id: callIds.at(-1) ?? '',
  calls: callIds.length,
  score,
});

/** The evaluation as the evaluator of the outcome gets it. */
function withOutcome(evaluation: Evaluation, { outcome }: RubricConfig): Evaluation {
  const { work } = evaluation;
  const evaluator = {
    ...work.evaluator,
    $typeName: 'polar.common.v1.EvaluatorSpec' as const,
    strategy: outcome.strategy,
    config: outcome.config as JsonObject,
    env: work.evaluator?.env ?? {},
    files: work.evaluator?.files ?? [],
  };
  return { ...evaluation, work: { ...work, evaluator } };
}

function judgeOf({ config }: EvaluatorContext, name: string): Judge {
  const judge = config.judges.get(name);
  if (judge !== undefined) return judge;
  const there = config.judges.size === 0 ? 'none' : listed([...config.judges.keys()]);
  throw new PolarError(
    'INVALID_TASK',
    `evaluator.config.judge: evaluators.judges of the topology has no ${name}; there are ${there}`,
  );
}
