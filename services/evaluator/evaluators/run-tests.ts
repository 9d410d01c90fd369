// A run of tests in a fresh sandbox, and whose doing it is where it does not end.
import type { JsonObject } from '@bufbuild/protobuf';
import { PolarError } from '../../common/errors.ts';
import type { ExecOutput } from '../../common/exec.ts';
import { tailOf } from '../domain/evaluation.ts';
import { leftMs } from '../sandboxes/sandbox.ts';
import type { Evaluation } from './evaluator.ts';
import { bothOf, TAIL_CHARS } from './grade-patch.ts';

/** Of a budget that is smaller than the limits together: tests that had this part of it were slow themselves. */
const FAIR_SHARE = 0.5;

export interface TestLimits {
  /** Of the tests. */
  readonly testSeconds: number;
  /** Of all that the evaluator may do. */
  readonly grantedSeconds: number;
}

/** Throws EVALUATION_TIMEOUT where it was cut, and had too little time for that to tell anything of the agent. */
export async function runTests(
  evaluation: Evaluation,
  limits: TestLimits,
  run: (timeoutMs: number) => Promise<ExecOutput>,
): Promise<ExecOutput> {
  const timeoutMs = Math.min(Math.ceil(limits.testSeconds * 1000), leftMs(evaluation.remainingMs));
  const output = await run(timeoutMs);
  if (!output.result.timedOut || hadTheirTime(evaluation, limits, timeoutMs)) return output;
  throw new PolarError('EVALUATION_TIMEOUT', 'too little of the evaluate budget was left for the tests');
}

/**
 * Whether tests that did not end are the agent's doing. Where the budget had room for every limit and they had less than
 * theirs, what came before them took it: preparing their sandbox, on a slow machine.
 */
function hadTheirTime({ work }: Evaluation, limits: TestLimits, timeoutMs: number): boolean {
  if (timeoutMs >= limits.testSeconds * 1000) return true;
  const budgetMs = Number(work.timeoutMs);
  const hasRoom = budgetMs >= limits.grantedSeconds * 1000;
  return !hasRoom && timeoutMs >= budgetMs * FAIR_SHARE;
}

/** What is told of it, however its results are read. */
export function toldOf(output: ExecOutput): JsonObject {
  const { timedOut, exitCode, outOfMemory, droppedOutputBytes } = output.result;
  return {
    test_timeout: timedOut,
    test_exit_code: exitCode,
    test_output_tail: tailOf(bothOf(output), TAIL_CHARS),
    ...(outOfMemory && { test_out_of_memory: true }),
    ...(droppedOutputBytes > 0n && { test_output_cut: true }),
  };
}
