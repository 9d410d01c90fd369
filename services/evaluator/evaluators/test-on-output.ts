// Tests run on the agent's changes in a fresh sandbox: 1.0 where their results are exactly the expected ones.
import { checkStrict } from '../../common/config/faults.ts';
import type { ExecOutput } from '../../common/exec.ts';
import { EVALUATION_BYTES_MAX } from '../../common/limits.ts';
import { type TestOnOutputConfig, testOnOutputConfig } from '../../common/specs/strategies.ts';
import { bounded, tailOf } from '../domain/evaluation.ts';
import { EXCLUDED_ALWAYS, type FilteredPatch, filterPatch, isEmptyPatch } from '../domain/patch.ts';
import { baseTrees, execIn, extractChanges, lacksBase, leftOutOf } from '../sandboxes/repository.ts';
import { liveSandbox, type Sandbox, withFreshSandbox } from '../sandboxes/sandbox.ts';
import type { Evaluation, Evaluator } from './evaluator.ts';
import { type Grade, gradePatch, limitMs, type PatchJob, TAIL_CHARS, zero } from './grade-patch.ts';
import { type Changes, hasFailed, readChanges } from './read-changes.ts';
import { traceRewards } from './trace-rewards.ts';

export const testOnOutput: Evaluator = {
  name: 'test_on_output',
  summary:
    'Runs tests on the changes in a fresh sandbox: 1.0 if their results are the expected ones, else 0.0.',
  async evaluate(ctx, evaluation, signal) {
    const config = configOf(evaluation);
    const job: PatchJob = {
      config,
      evaluation,
      rewards: (sandbox, command) => traceRewards(ctx, evaluation, sandbox, command, signal),
    };
    const live = await liveSandbox(ctx, evaluation, signal);
    const inFresh: InFresh = (use) => withFreshSandbox(ctx, evaluation, signal, use);
    const command = config.patch_command;
    const grade =
      command === undefined
        ? await inFresh((fresh) => gradeRepository(job, live, fresh))
        : await gradeCommand(job, live, command, inFresh);
    const { told: found, ...rewards } = grade;
    const told = { resolved: false, ...FLAGS, ...found };
    return { ...rewards, evaluation: bounded(told, EVALUATION_BYTES_MAX) };
  },
};

type InFresh = <T>(use: (fresh: Sandbox) => Promise<T>) => Promise<T>;

const FLAGS = { empty_generation: false, failed_apply_patch: false, test_timeout: false };

const configOf = ({ work }: Evaluation): TestOnOutputConfig =>
  checkStrict(testOnOutputConfig, work.evaluator?.config ?? {}, 'evaluator.config', 'INVALID_TASK');

/** The changes since the commit that both sandboxes began with. */
async function gradeRepository(job: PatchJob, live: Sandbox, fresh: Sandbox): Promise<Grade> {
  const { repo_dir, apply_timeout } = job.config;
  const trees = await baseTrees(fresh, repo_dir, limitMs(job, apply_timeout));
  const read: Changes['read'] = (sandbox, timeoutMs) => extractChanges(sandbox, repo_dir, trees, timeoutMs);
  const what = 'repo_dir: reading its changes';
  const changes = { what, read, readAgain: read, isWholeAgain: true };
  const output = await readChanges(job, changes, live, (use) => use(fresh));
  if ('reward' in output) return output;
  const patch = readPatch(job, output);
  const grade = 'reward' in patch ? patch : await gradePatch(job, fresh, patch);
  return hasFailed(output) ? grade : withLeftOut(grade, leftOutOf(output));
}

const withLeftOut = (grade: Grade, paths: readonly string[]): Grade =>
  paths.length === 0 ? grade : { ...grade, told: { ...grade.told, left_out_files: [...paths] } };

/** A git that was killed leaves it, and the next one does nothing. */
const UNLOCK = 'rm -f .git/index.lock\n';

/** What the task's own command prints; a fresh sandbox is made only where there is something to apply. */
async function gradeCommand(job: PatchJob, live: Sandbox, command: string, inFresh: InFresh): Promise<Grade> {
  const { repo_dir } = job.config;
  const changes: Changes = {
    what: 'patch_command:',
    read: (sandbox, timeoutMs) => execIn(sandbox, repo_dir, command, timeoutMs),
    readAgain: (sandbox, timeoutMs) => execIn(sandbox, repo_dir, UNLOCK + command, timeoutMs),
    // Nobody knows what it does where it has begun before.
    isWholeAgain: false,
  };
  const output = await readChanges(job, changes, live, inFresh);
  if ('reward' in output) return output;
  const patch = readPatch(job, output);
  return 'reward' in patch ? patch : await inFresh((fresh) => gradePatch(job, fresh, patch));
}

const UNREAD = {
  failed_apply_patch: true,
  apply_output_tail:
    'this is no unified diff, or says the name of a file in a way that tools read otherwise: with exclude_patterns it is not applied',
};

const BASELESS = {
  patch_error_tail:
    'the repository has none of the commits that a fresh sandbox has after `prepare`, and no change since its own last one: what was committed in the session is not graded',
};

/** The patch, or the grade where there is none to apply. */
function readPatch({ config }: PatchJob, output: ExecOutput): FilteredPatch | Grade {
  const { stdout, stderr, result } = output;
  if (result.exitCode !== 0) {
    return zero({ patch_exit_code: result.exitCode, patch_error_tail: tailOf(stderr, TAIL_CHARS) });
  }
  if (result.droppedOutputBytes > 0n) return zero({ patch_too_large: true, failed_apply_patch: true });
  const patch = filterPatch(stdout, [...EXCLUDED_ALWAYS, ...config.exclude_patterns]);
  if (isEmptyPatch(patch.bytes)) {
    const why = lacksBase(output) ? BASELESS : {};
    return zero({ empty_generation: true, excluded_files: [...patch.excluded], ...why });
  }
  return patch.isRead || config.exclude_patterns.length === 0 ? patch : zero(UNREAD);
}
