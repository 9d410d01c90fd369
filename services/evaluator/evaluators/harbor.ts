// A Harbor task's own verifier, run in the sandbox of the run: it judges the machine as the agent left it, and not a patch.
import type { UploadFile } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { checkStrict } from '../../common/config/faults.ts';
import { type HarborConfig, harborConfig } from '../../common/specs/live-grading.ts';
import { harborReward } from '../domain/harbor-reward.ts';
import type { SandboxFile } from '../sandboxes/sandbox.ts';
import type { Evaluation, Evaluator } from './evaluator.ts';
import { gradeLive } from './grade-live.ts';

/** What Harbor keeps its verifiers' output in. Putting it there makes the folder, in each backend the commands' own. */
const STDOUT_FILE = 'test-stdout.txt';
const FILE_MODE = 0o644;
const EXECUTABLE = 0o111;

export const harbor: Evaluator = {
  name: 'harbor',
  summary: "Runs a Harbor task's verifier in the sandbox of the run: what it writes as reward is the reward.",
  async evaluate(ctx, evaluation, signal) {
    const config = configOf(evaluation);
    const { tests_target: target, verifier_dir: logs, verifier_timeout: timeoutSeconds } = config;
    const tests = evaluation.work.evaluator?.files ?? [];
    const verifier = {
      clears: [target, logs],
      files: [...tests.map((file) => placed(file, target)), emptyFile(`${logs}/${STDOUT_FILE}`)],
      command: config.test_command ?? `/bin/bash ${quoted(`${target}/test.sh`)}`,
      ...{ timeoutSeconds, timeoutKey: 'verifier_timeout' },
      written: [`${logs}/reward.json`, `${logs}/reward.txt`],
      rewardOf: ([json, text]: readonly (Uint8Array | undefined)[]) => harborReward(json, text),
    };
    return await gradeLive(ctx, evaluation, verifier, signal);
  },
};

const configOf = ({ work }: Evaluation): HarborConfig =>
  checkStrict(harborConfig, work.evaluator?.config ?? {}, 'evaluator.config', 'INVALID_TASK');

/** Scripts can be run, whatever the client's file system says of them. */
function placed({ target, content, mode }: UploadFile, folder: string): SandboxFile {
  const runs = target.endsWith('.sh');
  return { target: `${folder}/${target}`, content, mode: runs ? (mode || FILE_MODE) | EXECUTABLE : mode };
}

const emptyFile = (target: string): SandboxFile => ({ target, content: new Uint8Array() });

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
