// A verifier run in the sandbox of the run. Where it gives no reward there, a fresh sandbox tells whose doing that is.
import type { JsonObject } from '@bufbuild/protobuf';
import { PolarError } from '../../common/errors.ts';
import { EVALUATION_BYTES_MAX } from '../../common/limits.ts';
import type { EvaluatorContext } from '../context.ts';
import { bounded } from '../domain/evaluation.ts';
import { liveSandbox, withFreshSandbox } from '../sandboxes/sandbox.ts';
import type { Evaluation, Verdict } from './evaluator.ts';
import { type Verification, type Verified, verify } from './verify.ts';

/** Of what a verifier printed that works nowhere. */
const ERROR_TAIL_CHARS = 500;

type Verifier = Omit<Verification, 'isCapped' | 'remainingMs'>;

/** Throws INVALID_TASK where it gives no reward without the agent's work either, EVALUATION_TIMEOUT, and what sandboxes throw. */
export async function gradeLive(
  ctx: EvaluatorContext,
  evaluation: Evaluation,
  verifier: Verifier,
  signal: AbortSignal,
): Promise<Verdict> {
  const { work, remainingMs } = evaluation;
  const live = await liveSandbox(ctx, evaluation, signal);
  const job: Verification = { ...verifier, isCapped: (work.runtime?.storageMb ?? 0) > 0, remainingMs };
  const first = await verify(job, live);
  if (first.reward !== undefined) return verdictOf(first.reward, first.told);
  await withFreshSandbox(ctx, evaluation, signal, async (fresh) => checkGives(await verify(job, fresh)));
  // It may have been a moment without time, or without room.
  const { reward, fault, told } = await verify(job, live);
  if (reward !== undefined) return verdictOf(reward, told);
  // It gives one where the agent has done nothing: that it gives none here, twice, is what the agent has done.
  return verdictOf(0, { ...told, verifier_error: `the verifier ${fault}` });
}

const verdictOf = (reward: number, told: JsonObject): Verdict => ({
  reward,
  evaluation: bounded(told, EVALUATION_BYTES_MAX),
});

/** Throws INVALID_TASK, or EVALUATION_TIMEOUT where it may be the machine that is slow. */
function checkGives({ reward, fault, isLate, told }: Verified): void {
  if (reward !== undefined) return;
  const tail = String(told['verifier_output_tail'] ?? '')
    .slice(-ERROR_TAIL_CHARS)
    .trim();
  const message = `evaluator: without the agent's work, too, the verifier ${fault}${tail && `: ${tail}`}`;
  throw new PolarError(isLate ? 'EVALUATION_TIMEOUT' : 'INVALID_TASK', message);
}
