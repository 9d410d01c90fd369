// Tests run on the agent's changes in a fresh sandbox: 1.0 where their results are exactly the expected ones.
import { checkStrict } from '../../common/config/faults.ts';
import {
  grantedSeconds,
  type TestOnOutputConfig,
  testOnOutputConfig,
} from '../../common/specs/strategies.ts';
import { resultsJson } from '../domain/evaluation.ts';
import { readResults, wantedResults } from '../domain/test-formats.ts';
import { hasResults, sameResults } from '../domain/test-results.ts';
import { execIn } from '../sandboxes/repository.ts';
import type { Sandbox } from '../sandboxes/sandbox.ts';
import type { Evaluation, Evaluator } from './evaluator.ts';
import { gradeChanges } from './grade-changes.ts';
import type { Grade } from './grade-patch.ts';
import type { PrintedRewards } from './printed-rewards.ts';
import { runTests, type TestLimits, toldOf } from './run-tests.ts';
import { type RewardsCommand, traceRewards } from './trace-rewards.ts';

export const testOnOutput: Evaluator = {
  name: 'test_on_output',
  summary:
    'Runs tests on the changes in a fresh sandbox: 1.0 if their results are the expected ones, else 0.0.',
  async evaluate(ctx, evaluation, signal) {
    const config = configOf(evaluation);
    const rewards: AskRewards = (sandbox, command) => traceRewards(ctx, evaluation, sandbox, command, signal);
    const test = (fresh: Sandbox): Promise<Grade> => gradeRewarded(config, evaluation, fresh, rewards);
    return await gradeChanges(ctx, { config, evaluation, test }, signal);
  },
};

/** Asked once the tests have run, where the task has a command for it. */
type AskRewards = (sandbox: Sandbox, command: RewardsCommand) => Promise<PrintedRewards>;

const configOf = ({ work }: Evaluation): TestOnOutputConfig =>
  checkStrict(testOnOutputConfig, work.evaluator?.config ?? {}, 'evaluator.config', 'INVALID_TASK');

async function gradeRewarded(
  config: TestOnOutputConfig,
  evaluation: Evaluation,
  fresh: Sandbox,
  ask: AskRewards,
): Promise<Grade> {
  const { reward, told } = await gradeTests(config, evaluation, fresh);
  const tests = { resolved: reward === 1, ...told };
  const { rewards_command: command, rewards_timeout: timeoutSeconds, repo_dir: repoDir } = config;
  if (command === undefined || told['test_timeout'] === true) return { reward, told: tests };
  const { reward: own, traceRewards } = await ask(fresh, { command, timeoutSeconds, repoDir });
  const all = { ...tests, trace_rewards: traceRewards.length };
  return { reward: own ?? reward, told: all, traceRewards };
}

async function gradeTests(
  config: TestOnOutputConfig,
  evaluation: Evaluation,
  fresh: Sandbox,
): Promise<Grade> {
  const { repo_dir, test_command, test_format, test_timeout, expected_output_json: expected } = config;
  const limits: TestLimits = {
    testSeconds: test_timeout,
    grantedSeconds: grantedSeconds({ strategy: 'test_on_output', config }),
  };
  const run = (timeoutMs: number) => execIn(fresh, repo_dir, test_command, timeoutMs);
  const output = await runTests(evaluation, limits, run);
  const printed = { stdout: textOf(output.stdout), stderr: textOf(output.stderr) };
  const results = readResults(test_format, printed, expected);
  const wanted = wantedResults(test_format, expected);
  const isAsWanted = config.unlisted_tests === 'ignore' ? hasResults : sameResults;
  return {
    reward: !output.result.timedOut && isAsWanted(results, wanted) ? 1 : 0,
    told: {
      tests_expected: Object.keys(expected).length,
      tests_parsed: results.size,
      results: resultsJson(results, wanted),
      ...toldOf(output),
    },
  };
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
