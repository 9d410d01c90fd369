// The leased sandbox of a run: its lease, its files, its one command.
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { RunWork } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type {
  ExecResult,
  Runtime,
} from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { Deadline } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { execStreamed, sandboxError } from '../../common/exec.ts';
import { LEASE_MARGIN_MS, LEASE_MAX_MS, RPC_TIMEOUT_MS } from '../../common/limits.ts';
import type { HarnessExecutorContext } from '../context.ts';
import * as events from '../events.ts';
import type { Launch } from './launch.ts';
import type { Run } from './run.ts';
import { RunClock } from './run-clock.ts';

/** As long as the run can take: a session may have waited in READY for any time. */
const leaseMsOf = ({ timeoutMs }: RunWork): number =>
  Math.min(Number(timeoutMs) + LEASE_MARGIN_MS, LEASE_MAX_MS);

/** The sandbox, leased anew. Throws RUNTIME_LOST. */
export async function leaseRuntime(
  { runtimes }: HarnessExecutorContext,
  work: RunWork,
  signal: AbortSignal,
): Promise<Runtime> {
  const { runtimeId } = work;
  using deadline = new Deadline(RPC_TIMEOUT_MS, signal);
  const ttl = durationFromMs(leaseMsOf(work));
  const { runtime } = await sandboxCall(runtimes.renewLease({ runtimeId, ttl }, { signal: deadline.signal }));
  if (runtime === undefined) throw new PolarError('RUNTIME_LOST', `${runtimeId} has no lease`);
  return runtime;
}

/** Put its files there and run the harness to its end, or to its limit; keeps what it writes. Throws RUNTIME_LOST, SANDBOX_FAILED. */
export async function execHarness(
  { runtimes, logs, log, policy }: HarnessExecutorContext,
  { ref, work }: Run,
  { command, files }: Launch,
  signal: AbortSignal,
): Promise<ExecResult> {
  const output = logs.begin(ref.sessionId, ref.attempt);
  let exitCode = -1;
  let leftOut = { stdout: 0, stderr: 0 };
  try {
    const timeoutMs = Number(work.timeoutMs);
    const limits = { timeoutMs, leaseMs: leaseMsOf(work), clock: new RunClock(policy, timeoutMs) };
    const request = { ...command, ...limits, files, runtimeId: work.runtimeId, proxyAccess: true };
    const result = await sandboxCall(execStreamed(runtimes, request, output, signal));
    exitCode = result.exitCode;
    const stderr = Number(result.droppedStderrBytes);
    leftOut = { stdout: Number(result.droppedOutputBytes) - stderr, stderr };
    if (!result.empty) throw new PolarError('SANDBOX_FAILED', 'processes of the harness could not be ended');
    return result;
  } finally {
    await output.close(exitCode, leftOut).catch((error) => events.logNotKept(log, ref, error));
  }
}

/** What a call for the sandbox of a run threw, as what it means to the run. */
export const sandboxCall = <T>(call: Promise<T>): Promise<T> =>
  call.catch((thrown: unknown) => {
    const error = sandboxError(thrown);
    // The lease is ours alone: whoever is at work in there is not known here.
    if (error.reason === 'RUNTIME_BUSY') {
      throw new PolarError('SANDBOX_FAILED', error.message, { cause: error });
    }
    throw error;
  });
