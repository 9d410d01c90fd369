// A Harbor task's own verifier, run in the sandbox of the run: it judges the machine as the agent left it, and not a patch.
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { EVALUATION_BYTES_MAX } from '../../common/limits.ts';
import { type HarborConfig, harborConfig } from '../../common/specs/live-grading.ts';
import { bounded } from '../domain/evaluation.ts';
import { liveSandbox, withFreshSandbox } from '../sandboxes/sandbox.ts';
import type { Evaluation, Evaluator } from './evaluator.ts';
import { type Verification, type Verified, verify } from './verify.ts';

/** Of what a verifier printed that works nowhere. */
const ERROR_TAIL_CHARS = 500;

export const harbor: Evaluator = {
  name: 'harbor',
  summary: "Runs a Harbor task's verifier in the sandbox of the run: what it writes as reward is the reward.",
  async evaluate(ctx, evaluation, signal) {
    const { work, remainingMs } = evaluation;
    const config = configOf(evaluation);
    const live = await liveSandbox(ctx, evaluation, signal);
    const isCapped = (work.runtime?.storageMb ?? 0) > 0;
    const job: Verification = { config, tests: work.evaluator?.files ?? [], isCapped, remainingMs };
    const first = await verify(job, live);
    if (first.reward === undefined) {
      await withFreshSandbox(ctx, evaluation, signal, async (fresh) => checkGives(await verify(job, fresh)));
    }
    // What had no room for a moment has it now.
    const { reward, fault, told } = first.cause === 'no room' ? await verify(job, live) : first;
    if (reward !== undefined) return { reward, evaluation: bounded(told, EVALUATION_BYTES_MAX) };
    // It gives one where the agent has done nothing: that it gives none here is what the agent has done.
    const all = { ...told, verifier_error: `the verifier ${fault}` };
    return { reward: 0, evaluation: bounded(all, EVALUATION_BYTES_MAX) };
  },
};

const configOf = ({ work }: Evaluation): HarborConfig =>
  checkStrict(harborConfig, work.evaluator?.config ?? {}, 'evaluator.config', 'INVALID_TASK');

/** Throws INVALID_TASK, or EVALUATION_TIMEOUT where it may be the machine that is slow. */
function checkGives({ reward, fault, cause, told }: Verified): void {
  if (reward !== undefined) return;
  const tail = String(told['verifier_output_tail'] ?? '')
    .slice(-ERROR_TAIL_CHARS)
    .trim();
  const message = `evaluator harbor: without the agent's work, too, the verifier ${fault}${tail && `: ${tail}`}`;
  throw new PolarError(cause === 'late' ? 'EVALUATION_TIMEOUT' : 'INVALID_TASK', message);
}
