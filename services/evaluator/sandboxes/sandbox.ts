// Sandboxes as evaluators use them: the live one of the run, and a fresh one.
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { AttemptRef, EvaluateWork } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { withTimeout } from '../../common/clock.ts';
import { PolarError, type Reason } from '../../common/errors.ts';
import { type ExecOutput, execCollected, type Runtimes, sandboxError } from '../../common/exec.ts';
import { LEASE_MARGIN_MS, LEASE_MAX_MS, RPC_TIMEOUT_MS, STAGE_GRACE_MS } from '../../common/limits.ts';
import type { EvaluatorContext } from '../context.ts';
import type { Evaluation } from '../evaluators/evaluator.ts';

export interface Sandbox {
  /**
   * Run a command; a failure of it is a result. Its working directory is `/`, as an agent may have removed any other.
   * Throws RUNTIME_LOST, SANDBOX_FAILED.
   */
  exec(argv: readonly string[], timeoutMs: number): Promise<ExecOutput>;
  putFile(path: string, content: Uint8Array): Promise<void>;
}

/** The sandbox of the run, its lease renewed for the evaluation. Throws RUNTIME_LOST, NOTHING_TO_GRADE. */
export async function liveSandbox(
  { runtimes }: EvaluatorContext,
  { ref, work, remainingMs, stored }: Evaluation,
  signal: AbortSignal,
): Promise<Sandbox> {
  if (stored !== undefined) throw gone(ref);
  const { runtimeId } = work;
  const ttl = durationFromMs(Math.min(leftMs(remainingMs) + LEASE_MARGIN_MS, LEASE_MAX_MS));
  await sandboxCall(runtimes.renewLease({ runtimeId, ttl }, within(RPC_TIMEOUT_MS, signal)));
  return sandboxOf(runtimes, runtimeId, work, signal);
}

/** Make a fresh sandbox, use it, remove it. Throws what making one throws. */
export async function withFreshSandbox<T>(
  ctx: EvaluatorContext,
  evaluation: Evaluation,
  signal: AbortSignal,
  use: (sandbox: Sandbox) => Promise<T>,
): Promise<T> {
  const { runtimes } = ctx;
  const { work, remainingMs } = evaluation;
  const budgetMs = leftMs(remainingMs);
  const { runtime } = await sandboxCall(
    runtimes.acquireRuntime(
      {
        ...(work.runtime && { spec: work.runtime }),
        owner: ownerOf(evaluation),
        ttl: durationFromMs(Math.min(budgetMs + STAGE_GRACE_MS, LEASE_MAX_MS)),
        forEvaluation: true,
        prepareTimeout: durationFromMs(budgetMs),
      },
      within(budgetMs + STAGE_GRACE_MS, signal),
    ),
  );
  if (runtime === undefined) throw new PolarError('SANDBOX_FAILED', 'no sandbox was made');
  const { runtimeId } = runtime;
  try {
    return await use(sandboxOf(runtimes, runtimeId, work, signal));
  } finally {
    // Where this fails, the lease ends by itself.
    await runtimes.releaseRuntime({ runtimeId }, { timeoutMs: RPC_TIMEOUT_MS }).catch(() => {});
  }
}

function sandboxOf(
  runtimes: Runtimes,
  runtimeId: string,
  { evaluator }: EvaluateWork,
  signal: AbortSignal,
): Sandbox {
  const env = evaluator?.env ?? {};
  return {
    exec: (argv, timeoutMs) =>
      sandboxCall(execCollected(runtimes, { runtimeId, argv, timeoutMs, env, cwd: '/' }, signal)),
    async putFile(path, content) {
      const files = [{ target: path, content }];
      await sandboxCall(runtimes.putFiles({ runtimeId, files }, within(RPC_TIMEOUT_MS, signal)));
    },
  };
}

/** Throws EVALUATION_TIMEOUT where nothing is left. */
export function leftMs(remainingMs: () => number): number {
  const ms = Math.floor(remainingMs());
  if (ms > 0) return ms;
  throw new PolarError('EVALUATION_TIMEOUT', 'the evaluate budget was spent');
}

/** Sandboxes of a session go when it has ended; one that is graded again has ended long ago. */
const ownerOf = ({ ref: { sessionId, attempt }, stored }: Evaluation): object =>
  stored === undefined ? { sessionId, attempt, purpose: 'evaluate' } : { purpose: 'evaluate_again' };

const gone = ({ sessionId }: AttemptRef): PolarError =>
  new PolarError(
    'NOTHING_TO_GRADE',
    `the sandbox of session ${sessionId} is gone, and its evaluator looks at that: it cannot be graded again`,
  );

const within = (ms: number, signal: AbortSignal): { signal: AbortSignal } => ({
  signal: withTimeout(ms, signal),
});

/** Limits of the node, and others at work in a sandbox: no task has asked for them. */
const OF_THE_NODE: readonly Reason[] = ['RUNTIME_LIMIT', 'RUNTIME_BUSY'];

const sandboxCall = <T>(call: Promise<T>): Promise<T> =>
  call.catch((thrown: unknown) => {
    const error = sandboxError(thrown);
    if (OF_THE_NODE.includes(error.reason)) {
      throw new PolarError('SANDBOX_FAILED', error.message, { cause: error });
    }
    throw error;
  });
