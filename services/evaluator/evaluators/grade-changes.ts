// What an agent has changed, taken out of its sandbox, put into a fresh one and graded there.
import type { StoredChanges } from '../../../gen/ts/polar/event/v1/graded_pb.js';
import { EVALUATION_BYTES_MAX } from '../../common/limits.ts';
import type { EvaluatorContext } from '../context.ts';
import { bounded } from '../domain/evaluation.ts';
import { EXCLUDED_ALWAYS, type FilteredPatch, filterPatch, isEmptyPatch } from '../domain/patch.ts';
import { baseTrees, execIn, extractChanges } from '../sandboxes/repository.ts';
import { liveSandbox, type Sandbox, withFreshSandbox } from '../sandboxes/sandbox.ts';
import type { Verdict } from './evaluator.ts';
import { type Grade, gradePatch, limitMs, type PatchJob, zero } from './grade-patch.ts';
import { changesOf, checkSame, keepChanges } from './kept-changes.ts';
import { type Changes, endless, readChanges } from './read-changes.ts';

/** Those of the run's sandbox, or what was read of them before. Throws a PolarError where the machine or the task leaves no verdict. */
export async function gradeChanges(
  ctx: EvaluatorContext,
  job: PatchJob,
  signal: AbortSignal,
): Promise<Verdict> {
  const { evaluation } = job;
  const { stored } = evaluation;
  const inFresh: InFresh = (use) => withFreshSandbox(ctx, evaluation, signal, use);
  const grade =
    stored === undefined
      ? await gradeLive(ctx, job, inFresh, signal)
      : await gradeStored(job, await stored.changes(signal), inFresh);
  const { told: found, ...rewards } = grade;
  const told = { resolved: false, ...FLAGS, ...found };
  return { ...rewards, evaluation: bounded(told, EVALUATION_BYTES_MAX) };
}

type InFresh = <T>(use: (fresh: Sandbox) => Promise<T>) => Promise<T>;

const FLAGS = { empty_generation: false, failed_apply_patch: false, test_timeout: false };

/** By the sandbox of the run. */
async function gradeLive(
  ctx: EvaluatorContext,
  job: PatchJob,
  inFresh: InFresh,
  signal: AbortSignal,
): Promise<Grade> {
  const live = await liveSandbox(ctx, job.evaluation, signal);
  const keep: Keep = (changes) => keepChanges(ctx, job.evaluation, changes, signal);
  const command = job.config.patch_command;
  if (command !== undefined) return await gradeCommand(job, live, command, inFresh, keep);
  return await inFresh((fresh) => gradeRepository(job, live, fresh, keep));
}

/** What is read is kept before it is graded: an evaluation that fails then can be made again. */
type Keep = (changes: StoredChanges) => Promise<void>;

/** By what was read before the sandbox of the run was gone. */
async function gradeStored(job: PatchJob, changes: StoredChanges, inFresh: InFresh): Promise<Grade> {
  checkSame(changes, job.config);
  return await gradeRead(job, changes, inFresh);
}

/** The changes since the commit that both sandboxes began with. */
async function gradeRepository(job: PatchJob, live: Sandbox, fresh: Sandbox, keep: Keep): Promise<Grade> {
  const { repo_dir, apply_timeout } = job.config;
  const trees = await baseTrees(fresh, repo_dir, limitMs(job, apply_timeout));
  const read: Changes['read'] = (sandbox, timeoutMs) => extractChanges(sandbox, repo_dir, trees, timeoutMs);
  const what = 'repo_dir: reading its changes';
  const changes = { what, read, readAgain: read, isWholeAgain: true };
  const found = changesOf(job, await readChanges(job, changes, live, (use) => use(fresh)));
  await keep(found);
  return await gradeRead(job, found, (use) => use(fresh));
}

async function gradeRead(job: PatchJob, changes: StoredChanges, inFresh: InFresh): Promise<Grade> {
  const patch = readPatch(job, changes);
  const grade = 'reward' in patch ? patch : await inFresh((fresh) => gradePatch(job, fresh, patch));
  return withLeftOut(grade, changes.leftOutFiles);
}

const withLeftOut = (grade: Grade, paths: readonly string[]): Grade =>
  paths.length === 0 ? grade : { ...grade, told: { ...grade.told, left_out_files: [...paths] } };

/** A git that was killed leaves it, and the next one does nothing. */
const UNLOCK = 'rm -f .git/index.lock\n';

/** What the task's own command prints; a fresh sandbox is made only where there is something to apply. */
async function gradeCommand(
  job: PatchJob,
  live: Sandbox,
  command: string,
  inFresh: InFresh,
  keep: Keep,
): Promise<Grade> {
  const { repo_dir } = job.config;
  const changes: Changes = {
    what: 'patch_command:',
    read: (sandbox, timeoutMs) => execIn(sandbox, repo_dir, command, timeoutMs),
    readAgain: (sandbox, timeoutMs) => execIn(sandbox, repo_dir, UNLOCK + command, timeoutMs),
    // Nobody knows what it does where it has begun before.
    isWholeAgain: false,
  };
  const found = changesOf(job, await readChanges(job, changes, live, inFresh));
  await keep(found);
  return await gradeRead(job, found, inFresh);
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
function readPatch(job: PatchJob, changes: StoredChanges): FilteredPatch | Grade {
  const { config } = job;
  const { exitCode, errorTail, tooLarge, lacksBase } = changes;
  if (changes.endless) return endless(job);
  if (exitCode !== 0) return zero({ patch_exit_code: exitCode, patch_error_tail: errorTail });
  if (tooLarge) return zero({ patch_too_large: true, failed_apply_patch: true });
  const patch = filterPatch(changes.patch, [...EXCLUDED_ALWAYS, ...config.exclude_patterns]);
  if (isEmptyPatch(patch.bytes)) {
    const why = lacksBase ? BASELESS : {};
    return zero({ empty_generation: true, excluded_files: [...patch.excluded], ...why });
  }
  return patch.isRead || config.exclude_patterns.length === 0 ? patch : zero(UNREAD);
}
