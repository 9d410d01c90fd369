// The harness of a run, on its node. The scheduler, which counts the run's budget, too, is told when it has to wait for that.
import type { AttemptRef } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { type FactOptions, publishFact } from '../../common/nats/facts.ts';
import type { HarnessExecutorContext } from '../context.ts';
import * as events from '../events.ts';
import { ensureInstalled, type Installable, installFolder, isInstalled } from '../installs/install.ts';
import type { Run } from './run.ts';
import { untilStored } from './until-stored.ts';

/** Its folder; undefined where nothing is needed. Throws HARNESS_INSTALL_FAILED. */
export async function installFirst(
  ctx: HarnessExecutorContext,
  { ref, again }: Run,
  what: Installable,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { config, log } = ctx;
  const { name, install, python } = what;
  const cacheDir = config.node.cache_dir;
  if (install === undefined) return undefined;
  const startedAt = performance.now();
  const isThere = await isInstalled(cacheDir, what);
  // An executor before may have said that it installs, and no more.
  if (isThere && !again) return installFolder(cacheDir, name, install.version, python);
  if (!isThere) await tell(ctx, ref, { kind: { case: 'installing', value: {} }, durationMs: 0 }, signal);
  const folder = await ensureInstalled(cacheDir, what, events.installEvents(log), signal);
  const durationMs = performance.now() - startedAt;
  await tell(ctx, ref, { kind: { case: 'installed', value: {} }, durationMs }, signal);
  return folder;
}

/** Stored when it returns: the scheduler must not see the end of an install that it has not seen begin. */
const tell = (
  { bus, blobs, log }: HarnessExecutorContext,
  ref: AttemptRef,
  fact: Pick<FactOptions, 'kind' | 'durationMs'>,
  signal: AbortSignal,
): Promise<void> =>
  untilStored(
    () => publishFact(bus, blobs, { ref, ...fact, signal }),
    (error) => events.installNotTold(log, ref, error),
    signal,
  );
