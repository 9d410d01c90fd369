// What is kept of a sandbox when its harness has ended: the harness's own record, and what the task names.
import { posix } from 'node:path';
import type { RunWork } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { Deadline } from '../../common/clock.ts';
import { asPolarError } from '../../common/errors.ts';
import { execCollected } from '../../common/exec.ts';
import {
  ARTIFACTS_KEEP_MS,
  ARTIFACTS_PER_ATTEMPT_BYTES_MAX,
  ARTIFACTS_PER_ATTEMPT_MAX,
  EXEC_OUTPUT_BYTES_MAX,
  RPC_TIMEOUT_MS,
} from '../../common/limits.ts';
import type { Adapter } from '../adapters/adapter.ts';
import type { Keeping } from '../artifacts/artifact-store.ts';
import type { HarnessExecutorContext } from '../context.ts';
import { LISTING_SCRIPT, listed } from '../domain/listing.ts';
import * as events from '../events.ts';
import type { Run } from './run.ts';
import { leaseRuntime } from './sandbox.ts';

/** Reasons that are told; more are counted. */
const PROBLEMS_MAX = 64;

/** A session's result does not depend on it: what cannot be kept, or not in time, is told, and no failure. */
export async function keepArtifacts(
  ctx: HarnessExecutorContext,
  { ref, work }: Run,
  { transcripts }: Adapter,
  signal: AbortSignal,
  keepMs = ARTIFACTS_KEEP_MS,
): Promise<void> {
  const named = work.harness?.artifacts ?? [];
  if (named.length + transcripts.length === 0) return;
  using deadline = new Deadline(keepMs, signal);
  try {
    const workdir = await workdirFor(ctx, work, named, deadline.signal);
    const paths = named.map((path) => posix.resolve(workdir ?? '/', path));
    const roots = [...new Set([...transcripts, ...paths])];
    await using keeping = await ctx.artifacts.begin(ref.sessionId, ref.attempt);
    const { found, whole } = await list(ctx, work, roots, keepMs / 2, deadline.signal);
    const problems = whole ? missing(paths, found) : ['not all files could be listed'];
    const files = found.map(({ root, path }) => ({ path, isTranscript: transcripts.includes(root) }));
    problems.push(...(await fetchAll(ctx, work, files, keeping, deadline.signal)));
    signal.throwIfAborted();
    await keeping.done(shortened(problems), workdir);
  } catch (error) {
    signal.throwIfAborted();
    events.artifactsNotKept(ctx.log, ref, error);
  }
}

/** Of the sandbox, which is asked for it where something is named by it. */
async function workdirFor(
  ctx: HarnessExecutorContext,
  work: RunWork,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  if (paths.every((path) => posix.isAbsolute(path))) return undefined;
  return (await leaseRuntime(ctx, work, signal)).workdir;
}

type Found = ReturnType<typeof listed>;

async function list(
  { runtimes }: HarnessExecutorContext,
  { runtimeId }: RunWork,
  roots: readonly string[],
  timeoutMs: number,
  signal: AbortSignal,
): Promise<{ found: Found; whole: boolean }> {
  const argv = ['sh', '-c', LISTING_SCRIPT, 'sh', ...roots];
  const { stdout, result } = await execCollected(runtimes, { runtimeId, argv, timeoutMs }, signal);
  const { exitCode, timedOut, droppedOutputBytes } = result;
  const isCut = droppedOutputBytes > 0n;
  // Of a long one the first half is whole, and then something is missing.
  const output = isCut ? stdout.subarray(0, EXEC_OUTPUT_BYTES_MAX / 2) : stdout;
  return { found: listed(roots, output), whole: exitCode === 0 && !timedOut && !isCut };
}

/** What the task names and is not there: mostly a slip of the pen. */
const missing = (paths: readonly string[], found: Found): string[] =>
  [...new Set(paths)]
    .filter((path) => !found.some(({ path: file }) => file === path || file.startsWith(`${path}/`)))
    .map((path) => `${path}: no file is there`);

async function fetchAll(
  { runtimes }: HarnessExecutorContext,
  { runtimeId }: RunWork,
  files: readonly { readonly path: string; readonly isTranscript: boolean }[],
  keeping: Keeping,
  signal: AbortSignal,
): Promise<string[]> {
  const problems: string[] = [];
  for (const { path, isTranscript } of files) {
    const full = fullness(keeping);
    if (full !== undefined) return [...problems, full];
    try {
      const { content } = await runtimes.getFile({ runtimeId, path }, { signal, timeoutMs: RPC_TIMEOUT_MS });
      await keeping.add(path, isTranscript, content);
    } catch (error) {
      if (signal.aborted) return [...problems, 'not all files could be read in time'];
      problems.push(`${path}: ${asPolarError(error).message}`);
    }
  }
  return problems;
}

/** The last one says why there are no more files. */
function shortened(problems: readonly string[]): readonly string[] {
  const more = problems.length - PROBLEMS_MAX;
  if (more <= 0) return problems;
  return [...problems.slice(0, PROBLEMS_MAX - 1), `and ${more} more`, ...problems.slice(-1)];
}

function fullness({ count, sizeBytes }: Keeping): string | undefined {
  if (count >= ARTIFACTS_PER_ATTEMPT_MAX) return `only ${ARTIFACTS_PER_ATTEMPT_MAX} files are kept`;
  if (sizeBytes >= ARTIFACTS_PER_ATTEMPT_BYTES_MAX)
    return `only about ${ARTIFACTS_PER_ATTEMPT_BYTES_MAX} bytes are kept`;
  return undefined;
}
