// The reward in a JSON file of the sandbox of the run: as a command of the task writes it, or as the run has left it.
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { clearingFault, type ResultFileConfig, resultFileConfig } from '../../common/specs/live-grading.ts';
import { resultReward } from '../domain/result-file.ts';
import { liveSandbox, type OpenSandbox } from '../sandboxes/sandbox.ts';
import type { Evaluation, Evaluator, Verdict } from './evaluator.ts';
import { gradeLive } from './grade-live.ts';

export const verifierResultFile: Evaluator = {
  name: 'verifier_result_file',
  summary:
    'Reads the reward from a JSON file in the sandbox of the run, written by a command after the run or by the run.',
  async evaluate(ctx, evaluation, signal) {
    const config = configOf(evaluation);
    const { command, result_file: path, reward_key: key } = config;
    if (command === undefined) return await readLeft(config, await liveSandbox(ctx, evaluation, signal));
    const verifier = {
      ...{ clears: [path], files: [], command, written: [path] },
      ...{ timeoutSeconds: config.command_timeout, timeoutKey: 'command_timeout' },
      rewardOf: ([content]: readonly (Uint8Array | undefined)[]) => resultReward(path, content, key),
    };
    return await gradeLive(ctx, evaluation, verifier, signal);
  },
};

const configOf = ({ work }: Evaluation): ResultFileConfig =>
  checkStrict(resultFileConfig, work.evaluator?.config ?? {}, 'evaluator.config', 'INVALID_TASK');

/** What a run should have written and has not is the run's doing. */
async function readLeft(
  { result_file: path, reward_key: key }: ResultFileConfig,
  live: OpenSandbox,
): Promise<Verdict> {
  const fault = clearingFault(path, await live.isolates(), live.workdir);
  if (fault !== undefined) throw new PolarError('INVALID_TASK', `evaluator.config.result_file ${fault}`);
  const found = resultReward(path, await contentOf(live, path), key);
  if (typeof found === 'string') return { reward: 0, evaluation: { verifier_error: `the run ${found}` } };
  return { reward: found.reward, evaluation: { rewards: { ...found.rewards } } };
}

/** Of a path that leads to no file: none. */
async function contentOf(live: OpenSandbox, path: string): Promise<Uint8Array | undefined> {
  try {
    return await live.readFile(path);
  } catch (error) {
    if (error instanceof PolarError && ['UNSAFE_PATH', 'FILE_TOO_LARGE'].includes(error.reason))
      return undefined;
    throw error;
  }
}
