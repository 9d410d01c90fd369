// Sandboxes as evaluators use them: the live one of the run, and a fresh one.
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { AttemptRef, EvaluateWork } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { Runtime } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { withTimeout } from '../../common/clock.ts';
import { asPolarError, PolarError, type Reason } from '../../common/errors.ts';
import { type ExecOutput, execCollected, type Runtimes, sandboxError } from '../../common/exec.ts';
import { LEASE_MARGIN_MS, LEASE_MAX_MS, RPC_TIMEOUT_MS, STAGE_GRACE_MS } from '../../common/limits.ts';
import type { EvaluatorContext } from '../context.ts';
import type { Evaluation } from '../evaluators/evaluator.ts';

export interface SandboxFile {
  /** Absolute. */
  readonly target: string;
  readonly content: Uint8Array;
  /** Permission bits; default 0644. */
  readonly mode?: number;
}

export interface Sandbox {
  /**
   * Run a command; a failure of it is a result. Its working directory is `/`, as an agent may have removed any other.
   * Throws RUNTIME_LOST, SANDBOX_FAILED.
   */
  exec(argv: readonly string[], timeoutMs: number): Promise<ExecOutput>;
  putFile(path: string, content: Uint8Array): Promise<void>;
}

/** What evaluators that grade in a sandbox as it stands have beside that. */
export interface OpenSandbox extends Sandbox {
  readonly workdir: string;
  /** False: its commands see the host. Throws RUNTIME_LOST, SANDBOX_FAILED. */
  isolates(): Promise<boolean>;
  /** Links are followed inside the sandbox, the last one is replaced. Throws UNSAFE_PATH, RUNTIME_LOST, SANDBOX_FAILED. */
  putFiles(files: readonly SandboxFile[]): Promise<void>;
  /** Undefined: there is none. Throws UNSAFE_PATH, FILE_TOO_LARGE, RUNTIME_LOST, SANDBOX_FAILED. */
  readFile(path: string): Promise<Uint8Array | undefined>;
}

const IN_WORKDIR = 'cd -- "$1" 2>/dev/null || cd /; exec /bin/sh -c "$2"';

/** A shell command in the workdir, or in `/` where an agent has removed that. Its shell is named by its path, as PATH is the agent's, too. */
export const execInWorkdir = (
  sandbox: OpenSandbox,
  command: string,
  timeoutMs: number,
): Promise<ExecOutput> =>
  sandbox.exec(['/bin/sh', '-c', IN_WORKDIR, 'sh', sandbox.workdir, command], timeoutMs);

/** The sandbox of the run, its lease renewed for the evaluation. Throws RUNTIME_LOST, NOTHING_TO_GRADE. */
export async function liveSandbox(
  { runtimes }: EvaluatorContext,
  { ref, work, remainingMs, stored }: Evaluation,
  signal: AbortSignal,
): Promise<OpenSandbox> {
  if (stored !== undefined) throw gone(ref);
  const { runtimeId } = work;
  const ttl = durationFromMs(Math.min(leftMs(remainingMs) + LEASE_MARGIN_MS, LEASE_MAX_MS));
  const renewed = runtimes.renewLease({ runtimeId, ttl }, within(RPC_TIMEOUT_MS, signal));
  const { runtime } = await sandboxCall(renewed);
  if (runtime === undefined) throw lost(runtimeId);
  return sandboxOf(runtimes, runtime, work, signal);
}

/** Make a fresh sandbox, use it, remove it. Throws what making one throws. */
export async function withFreshSandbox<T>(
  ctx: EvaluatorContext,
  evaluation: Evaluation,
  signal: AbortSignal,
  use: (sandbox: OpenSandbox) => Promise<T>,
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
    return await use(sandboxOf(runtimes, runtime, work, signal));
  } finally {
    // Where this fails, the lease ends by itself.
    await runtimes.releaseRuntime({ runtimeId }, { timeoutMs: RPC_TIMEOUT_MS }).catch(() => {});
  }
}

function sandboxOf(
  runtimes: Runtimes,
  { runtimeId, backend, workdir }: Runtime,
  { evaluator }: EvaluateWork,
  signal: AbortSignal,
): OpenSandbox {
  const env = evaluator?.env ?? {};
  const putFiles: OpenSandbox['putFiles'] = async (files) => {
    await sandboxCall(runtimes.putFiles({ runtimeId, files: [...files] }, within(RPC_TIMEOUT_MS, signal)));
  };
  return {
    workdir,
    async isolates() {
      const { backends } = await sandboxCall(runtimes.listRuntimes({}, within(RPC_TIMEOUT_MS, signal)));
      const found = backends.find(({ name }) => name === backend);
      if (found !== undefined) return found.isolates;
      throw new PolarError('SANDBOX_FAILED', `the node does not list its backend ${backend}`);
    },
    putFiles,
    exec: (argv, timeoutMs) =>
      sandboxCall(execCollected(runtimes, { runtimeId, argv, timeoutMs, env, cwd: '/' }, signal)),
    putFile: (path, content) => putFiles([{ target: path, content }]),
    readFile: (path) => readFile(runtimes, runtimeId, path, signal),
  };
}

async function readFile(
  runtimes: Runtimes,
  runtimeId: string,
  path: string,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  try {
    return (await runtimes.getFile({ runtimeId, path }, within(RPC_TIMEOUT_MS, signal))).content;
  } catch (error) {
    if (asPolarError(error).reason !== 'NOT_FOUND') return await sandboxCall(Promise.reject(error));
  }
  // Either the file is not there, or its sandbox.
  const held = await sandboxCall(runtimes.listRuntimes({}, within(RPC_TIMEOUT_MS, signal)));
  if (held.runtimes.some((one) => one.runtimeId === runtimeId)) return undefined;
  throw lost(runtimeId);
}

const lost = (runtimeId: string): PolarError =>
  new PolarError('RUNTIME_LOST', `there is no runtime ${runtimeId}`);

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
