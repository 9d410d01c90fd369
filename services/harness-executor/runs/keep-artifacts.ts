// What is kept of a sandbox when its harness has ended: the harness's own record, and what the task names.
import { posix } from 'node:path';
import type { AttemptRef, RunWork } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { Runtime } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
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

type Sandbox = Pick<Runtime, 'runtimeId' | 'workdir'>;

/** A session's result does not depend on it: what cannot be kept is told, and no failure. */
export async function keepArtifacts(
  ctx: HarnessExecutorContext,
  ref: AttemptRef,
  { harness }: RunWork,
  adapter: Adapter,
  runtime: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  const named = (harness?.artifacts ?? []).map((path) => posix.resolve(runtime.workdir, path));
  const roots = [...new Set([...adapter.transcripts, ...named])];
  if (roots.length === 0) return;
  try {
    const keeping = await ctx.artifacts.begin(ref.sessionId, ref.attempt);
    const problems = await fetchAll(ctx, keeping, adapter, runtime, roots, signal);
    await keeping.done(problems);
  } catch (error) {
    signal.throwIfAborted();
    events.artifactsNotKept(ctx.log, ref, error);
  }
}

async function fetchAll(
  { runtimes }: HarnessExecutorContext,
  keeping: Keeping,
  { transcripts }: Adapter,
  { runtimeId }: Sandbox,
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
