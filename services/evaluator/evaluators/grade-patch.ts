// A patch put into a fresh sandbox and tested there.
import type { JsonObject } from '@bufbuild/protobuf';
import type { ExecOutput } from '../../common/exec.ts';
import type { PatchOptions } from '../../common/specs/grading-options.ts';
import { tailOf } from '../domain/evaluation.ts';
import { type FilteredPatch, isEmptyPatch } from '../domain/patch.ts';
import { pathsLeft, withoutPresent } from '../domain/patch-present.ts';
import { applyPatch, inTime, presentIn } from '../sandboxes/repository.ts';
import { leftMs, type Sandbox } from '../sandboxes/sandbox.ts';
import type { CallReward, Evaluation } from './evaluator.ts';

export const TAIL_CHARS = 8_000;
const PATCH_HEAD_CHARS = 4_000;

export interface PatchJob {
  readonly config: PatchOptions;
  readonly evaluation: Evaluation;
  /** Before the changes are there. */
  readonly before?: (fresh: Sandbox) => Promise<void>;
  /** Once they are. */
  readonly test: (fresh: Sandbox) => Promise<Grade>;
}

export interface Grade {
  readonly reward: number;
  readonly told: JsonObject;
  readonly traceRewards?: CallReward[];
}

export const zero = (told: JsonObject): Grade => ({ reward: 0, told });

/** A limit of the configuration within what is left of the budget. Throws EVALUATION_TIMEOUT where nothing is. */
export const limitMs = ({ evaluation }: Pick<PatchJob, 'evaluation'>, seconds: number): number =>
  Math.min(Math.ceil(seconds * 1000), leftMs(evaluation.remainingMs));

/** Apply and test. What the fresh sandbox has already, as `prepare` leaves it uncommitted, is no change. */
export async function gradePatch(job: PatchJob, fresh: Sandbox, whole: FilteredPatch): Promise<Grade> {
  const { repo_dir, apply_timeout, exclude_patterns: leftOut } = job.config;
  await job.before?.(fresh);
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
  const { told, ...rewards } = await job.test(fresh);
  return { ...rewards, told: { ...about, applied_by: appliedBy, ...told } };
}

/** Standard error first: the end of a summary on standard output is what is told. */
export const bothOf = ({ stdout, stderr }: ExecOutput): Uint8Array =>
  Buffer.concat(stderr.byteLength > 0 ? [stderr, Buffer.from('\n'), stdout] : [stdout]);
