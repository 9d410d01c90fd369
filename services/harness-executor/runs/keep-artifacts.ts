// What is kept of a sandbox when its harness has ended: the harness's own record, and what the task names.
import { posix } from 'node:path';
import type { AttemptRef, RunWork } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { asPolarError } from '../../common/errors.ts';
import { execCollected } from '../../common/exec.ts';
import {
  ARTIFACTS_LISTING_MS,
  ARTIFACTS_PER_ATTEMPT_BYTES_MAX,
  ARTIFACTS_PER_ATTEMPT_MAX,
  RPC_TIMEOUT_MS,
} from '../../common/limits.ts';
import type { Adapter } from '../adapters/adapter.ts';
import type { Keeping } from '../artifacts/artifact-store.ts';
import type { HarnessExecutorContext } from '../context.ts';
import { LISTING_SCRIPT, listed } from '../domain/listing.ts';
import * as events from '../events.ts';
import { leaseRuntime } from './sandbox.ts';

/** A session's result does not depend on it: what cannot be kept is told, and no failure. */
export async function keepArtifacts(
  ctx: HarnessExecutorContext,
  ref: AttemptRef,
  work: RunWork,
  adapter: Adapter,
  signal: AbortSignal,
): Promise<void> {
  const named = work.harness?.artifacts ?? [];
  if (named.length + adapter.transcripts.length === 0) return;
  try {
    const roots = [...new Set([...adapter.transcripts, ...(await resolved(ctx, work, named, signal))])];
    const keeping = await ctx.artifacts.begin(ref.sessionId, ref.attempt);
    const problems = await fetchAll(ctx, keeping, adapter, work, roots, signal);
    await keeping.done(problems);
  } catch (error) {
    signal.throwIfAborted();
    events.artifactsNotKept(ctx.log, ref, error);
  }
}

/** Absolute in the sandbox; it is asked for its workdir where something is named by it. */
async function resolved(
  ctx: HarnessExecutorContext,
  work: RunWork,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (paths.every((path) => posix.isAbsolute(path))) return paths.map((path) => posix.resolve(path));
  const { workdir } = await leaseRuntime(ctx, work, signal);
  return paths.map((path) => posix.resolve(workdir, path));
}

async function fetchAll(
  { runtimes }: HarnessExecutorContext,
  keeping: Keeping,
  { transcripts }: Adapter,
  { runtimeId }: RunWork,
  roots: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const argv = ['sh', '-c', LISTING_SCRIPT, 'sh', ...roots];
  const request = { runtimeId, argv, timeoutMs: ARTIFACTS_LISTING_MS };
  const { stdout, result } = await execCollected(runtimes, request, signal);
  const problems = result.timedOut ? ['not all files could be listed in time'] : [];
  for (const { root, path } of listed(roots, stdout)) {
    const full = fullness(keeping);
    if (full !== undefined) return [...problems, full];
    try {
      const { content } = await runtimes.getFile({ runtimeId, path }, { signal, timeoutMs: RPC_TIMEOUT_MS });
      await keeping.add(path, transcripts.includes(root), content);
    } catch (error) {
      signal.throwIfAborted();
      problems.push(`${path}: ${asPolarError(error).message}`);
    }
  }
  return problems;
}

function fullness({ count, sizeBytes }: Keeping): string | undefined {
  if (count >= ARTIFACTS_PER_ATTEMPT_MAX) return `only ${ARTIFACTS_PER_ATTEMPT_MAX} files are kept`;
  if (sizeBytes >= ARTIFACTS_PER_ATTEMPT_BYTES_MAX)
    return `only about ${ARTIFACTS_PER_ATTEMPT_BYTES_MAX} bytes are kept`;
  return undefined;
}
