// A patch put into a fresh sandbox and tested there.
import type { JsonObject } from '@bufbuild/protobuf';
import { PolarError } from '../../common/errors.ts';
import type { ExecOutput } from '../../common/exec.ts';
import { grantedSeconds, type TestOnOutputConfig } from '../../common/specs/strategies.ts';
import { resultsJson, tailOf } from '../domain/evaluation.ts';
import { type FilteredPatch, isEmptyPatch } from '../domain/patch.ts';
import { pathsLeft, withoutPresent } from '../domain/patch-present.ts';
import { readResults, wantedResults } from '../domain/test-formats.ts';
import { hasResults, sameResults } from '../domain/test-results.ts';
import { applyPatch, execIn, inTime, presentIn } from '../sandboxes/repository.ts';
import { leftMs, type Sandbox } from '../sandboxes/sandbox.ts';
import type { CallReward, Evaluation } from './evaluator.ts';
import type { PrintedRewards } from './printed-rewards.ts';
import type { RewardsCommand } from './trace-rewards.ts';

export const TAIL_CHARS = 8_000;
const PATCH_HEAD_CHARS = 4_000;
/** Of a budget that is smaller than the limits together: tests that had this part of it were slow themselves. */
const FAIR_SHARE = 0.5;

export interface PatchJob {
  readonly config: TestOnOutputConfig;
  readonly evaluation: Evaluation;
  /** Asked once the tests have run, where the task has a command for it. */
  readonly rewards: (sandbox: Sandbox, command: RewardsCommand) => Promise<PrintedRewards>;
}

export interface Grade {
  readonly reward: number;
  readonly told: JsonObject;
  readonly traceRewards?: CallReward[];
}

export const zero = (told: JsonObject): Grade => ({ reward: 0, told });

/** A limit of the configuration within what is left of the budget. Throws EVALUATION_TIMEOUT where nothing is. */
export const limitMs = ({ evaluation }: PatchJob, seconds: number): number =>
  Math.min(Math.ceil(seconds * 1000), leftMs(evaluation.remainingMs));

/** Apply, test, compare. What the fresh sandbox has already, as `prepare` leaves it uncommitted, is no change. */
export async function gradePatch(job: PatchJob, fresh: Sandbox, whole: FilteredPatch): Promise<Grade> {
  const { repo_dir, apply_timeout, exclude_patterns: leftOut } = job.config;
  // One limit for both commands.
  const until = performance.now() + limitMs(job, apply_timeout);
  const applyMs = (): number => Math.max(1, Math.ceil(until - performance.now()));
  const present = await presentIn(fresh, repo_dir, whole.bytes, pathsLeft(whole), applyMs());
  const patch = withoutPresent(whole, present);
  if (isEmptyPatch(patch.bytes)) return zero({ empty_generation: true, excluded_files: [...patch.excluded] });
  const about = {
    patch_bytes: patch.bytes.byteLength,
    patch_files: [...patch.files],
    excluded_files: [...patch.excluded],
  };
  const changes = { bytes: patch.bytes, leftOut };
  const { appliedBy, output } = await applyPatch(fresh, repo_dir, changes, applyMs());
  inTime(output, 'the patch was not applied');
  if (appliedBy === undefined) {
    return zero({
      ...about,
      failed_apply_patch: true,
      apply_output_tail: tailOf(bothOf(output), TAIL_CHARS),
      patch_head: tailOf(patch.bytes.subarray(0, PATCH_HEAD_CHARS), PATCH_HEAD_CHARS),
    });
  }
  const { reward, told } = await gradeTests(job, fresh);
  const tests = { ...about, applied_by: appliedBy, resolved: reward === 1, ...told };
  const rewards = told['test_timeout'] === true ? undefined : await printedRewards(job, fresh);
  if (rewards === undefined) return { reward, told: tests };
  const { traceRewards } = rewards;
  const all = { ...tests, trace_rewards: traceRewards.length };
  return { reward: rewards.reward ?? reward, told: all, traceRewards };
}

async function printedRewards(job: PatchJob, fresh: Sandbox): Promise<PrintedRewards | undefined> {
  const { rewards_command: command, rewards_timeout: timeoutSeconds, repo_dir: repoDir } = job.config;
  if (command === undefined) return undefined;
  return await job.rewards(fresh, { command, timeoutSeconds, repoDir });
}

async function gradeTests(job: PatchJob, fresh: Sandbox): Promise<Grade> {
  const { repo_dir, test_command, test_format, test_timeout, expected_output_json: expected } = job.config;
  const testMs = limitMs(job, test_timeout);
  const output = await execIn(fresh, repo_dir, test_command, testMs);
  const { timedOut, exitCode, outOfMemory, droppedOutputBytes } = output.result;
  if (timedOut && !hadTheirTime(job, testMs)) {
    throw new PolarError('EVALUATION_TIMEOUT', 'too little of the evaluate budget was left for the tests');
  }
  const printed = { stdout: textOf(output.stdout), stderr: textOf(output.stderr) };
  const results = readResults(test_format, printed, expected);
  const wanted = wantedResults(test_format, expected);
  const isAsWanted = job.config.unlisted_tests === 'ignore' ? hasResults : sameResults;
  return {
    reward: !timedOut && isAsWanted(results, wanted) ? 1 : 0,
    told: {
      test_timeout: timedOut,
      test_exit_code: exitCode,
      tests_expected: Object.keys(expected).length,
      tests_parsed: results.size,
      results: resultsJson(results, wanted),
      test_output_tail: tailOf(bothOf(output), TAIL_CHARS),
      ...(outOfMemory && { test_out_of_memory: true }),
      ...(droppedOutputBytes > 0n && { test_output_cut: true }),
    },
  };
}

/**
 * Whether tests that did not end are the agent's doing. Where the budget had room for every limit and they had less than
 * theirs, what came before them took it: preparing their sandbox, on a slow machine.
 */
function hadTheirTime({ config, evaluation }: PatchJob, testMs: number): boolean {
  if (testMs >= config.test_timeout * 1000) return true;
  const budgetMs = Number(evaluation.work.timeoutMs);
  const hasRoom = budgetMs >= grantedSeconds({ strategy: 'test_on_output', config }) * 1000;
  return !hasRoom && testMs >= budgetMs * FAIR_SHARE;
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');

/** Standard error first: the end of a summary on standard output is what is told. */
const bothOf = ({ stdout, stderr }: ExecOutput): Uint8Array =>
  Buffer.concat(stderr.byteLength > 0 ? [stderr, Buffer.from('\n'), stdout] : [stdout]);
