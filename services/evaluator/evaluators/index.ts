// The evaluators, one for each name of the catalogue.
import { PolarError } from '../../common/errors.ts';
import { EVALUATORS, type EvaluatorName, listed } from '../../common/specs/catalogue.ts';
import type { Evaluator } from './evaluator.ts';
import { mathJudge } from './math-judge.ts';
import { responseMatch } from './response-match.ts';
import { rubricOver } from './rubric.ts';
import { sessionCompleted } from './session-completed.ts';
import { swebenchHarness } from './swebench-harness.ts';
import { testOnOutput } from './test-on-output.ts';

const outcomes = {
  session_completed: sessionCompleted,
  test_on_output: testOnOutput,
  swebench_harness: swebenchHarness,
  math_judge: mathJudge,
  response_match: responseMatch,
};
const IMPLEMENTED: Readonly<Record<EvaluatorName, Evaluator>> = { ...outcomes, rubric: rubricOver(outcomes) };

export const evaluators: readonly Evaluator[] = EVALUATORS.map((name) => IMPLEMENTED[name]);

/** Throws UNKNOWN_EVALUATOR. */
export function evaluatorOf(name: string): Evaluator {
  const known = EVALUATORS.find((one) => one === name);
  if (known !== undefined) return IMPLEMENTED[known];
  throw new PolarError('UNKNOWN_EVALUATOR', `unknown evaluator ${name}; there are ${listed(EVALUATORS)}`);
}
