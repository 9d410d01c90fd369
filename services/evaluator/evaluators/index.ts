// The evaluators, one for each name of the catalogue.
import { PolarError } from '../../common/errors.ts';
import { EVALUATORS, type EvaluatorName, listed } from '../../common/specs/catalogue.ts';
import { PLUGIN_PATH } from '../../common/specs/strategies.ts';
import type { Evaluator } from './evaluator.ts';
import { harbor } from './harbor.ts';
import { mathJudge } from './math-judge.ts';
import { pluginEvaluator } from './plugin.ts';
import { responseMatch } from './response-match.ts';
import { rubricOver } from './rubric.ts';
import { sessionCompleted } from './session-completed.ts';
import { swebenchHarness } from './swebench-harness.ts';
import { testOnOutput } from './test-on-output.ts';
import { verifierResultFile } from './verifier-result-file.ts';

const IMPLEMENTED: Readonly<Record<EvaluatorName, Evaluator>> = {
  session_completed: sessionCompleted,
  test_on_output: testOnOutput,
  rubric: rubricOver(evaluatorOf),
  harbor,
  verifier_result_file: verifierResultFile,
  swebench_harness: swebenchHarness,
  math_judge: mathJudge,
  response_match: responseMatch,
};

export const evaluators: readonly Evaluator[] = EVALUATORS.map((name) => IMPLEMENTED[name]);

/** Throws UNKNOWN_EVALUATOR. */
export function evaluatorOf(name: string): Pick<Evaluator, 'evaluate'> {
  if (PLUGIN_PATH.test(name)) return pluginEvaluator(name);
  const known = EVALUATORS.find((one) => one === name);
  if (known !== undefined) return IMPLEMENTED[known];
  throw new PolarError('UNKNOWN_EVALUATOR', `unknown evaluator ${name}; there are ${listed(EVALUATORS)}`);
}
