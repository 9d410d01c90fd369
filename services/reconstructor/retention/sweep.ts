// Takes what every consumer has acknowledged out of the store, some days later: the records first, then the group, then the
// blobs that only it names. A sweep that is cut leaves such blobs at most, to the scheduler's (ADR 34).
import type { Cursor, GroupReady } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { SWEEP_FIRST_MS, SWEEP_PAUSE_MS } from '../../common/limits.ts';
import type { ReconstructorContext } from '../context.ts';
import { isDone } from '../domain/retention.ts';
import { groupsSwept, sweepFailed } from '../events.ts';
import type { StoredGroup } from '../streams/trajectory-log.ts';

type SweepParts = Pick<ReconstructorContext, 'cursors' | 'trajectories' | 'retention' | 'log'>;

/** Sweeps now and then, until the signal aborts. */
export async function sweepAgain(parts: SweepParts, signal: AbortSignal): Promise<void> {
  const { keepMs } = parts.retention;
  if (keepMs === undefined) return;
  for (let pauseMs = SWEEP_FIRST_MS; ; pauseMs = SWEEP_PAUSE_MS) {
    await sleep(pauseMs, signal);
    if (signal.aborted) return;
    try {
      const swept = await sweepOld(parts, keepMs, signal);
      if (swept > 0) groupsSwept(parts.log, swept);
    } catch (error) {
      if (!signal.aborted) sweepFailed(parts.log, asPolarError(error));
    }
  }
}

/** What is old by this clock and by that of NATS: either may be set, and what goes does not come back. */
export async function sweepOld(parts: SweepParts, keepMs: number, signal: AbortSignal): Promise<number> {
  const nowMs = Math.min(Date.now(), await parts.trajectories.natsMs(signal));
  return await sweep(parts, nowMs - keepMs, signal);
}

/** Returns how many groups are gone. Groups are in the order in which they were complete, so that it ends at a young one. */
export async function sweep(parts: SweepParts, beforeMs: number, signal: AbortSignal): Promise<number> {
  const { trajectories, retention } = parts;
  const { store } = retention;
  let cursors = await cursorsOf(parts, signal);
  let swept = 0;
  // Tasks with a group that stays. Earlier attempts of a session that was retried are that group's, not the later one's.
  const staying = new Set<string>();
  for (let last = 0; ; ) {
    signal.throwIfAborted();
    const stored = await trajectories.after(last, '', signal);
    if (stored === undefined || !isSent(stored, cursors)) return swept;
    last = stored.batchId;
    if (!isDone(stored.batchId, stored.taskId, cursors)) staying.add(stored.taskId);
    if (staying.has(stored.taskId)) continue;
    const group = await stored.read(signal).catch(unreadable);
    if (group === undefined) continue;
    if (Number(group.readyMs) > beforeMs) return swept;
    // A consumer may have come, or have gone back, since they were read.
    cursors = await cursorsOf(parts, signal);
    if (!isDone(stored.batchId, stored.taskId, cursors)) {
      staying.add(stored.taskId);
      continue;
    }
    // A later attempt belongs to a later group.
    for (const { sessionId, attempt: last } of group.sessions) {
      for (let attempt = 1; attempt <= last; attempt++) await store.removeRecords(sessionId, attempt, signal);
    }
    await store.removeGroup(stored.batchId, stored.subject, signal);
    for (const sha256 of blobsOf(stored, group)) await store.removeBlob(sha256, signal);
    swept++;
  }
}

/** To any consumer; where it was not, nor was what is behind it, which may be all that there is. */
const isSent = ({ batchId }: StoredGroup, cursors: readonly Cursor[]): boolean =>
  cursors.some(({ sent }) => batchId <= sent);

/** What will never be read does not hold up what is behind it. */
function unreadable(error: unknown): undefined {
  if (error instanceof PolarError && !error.retryable) return undefined;
  throw error;
}

async function cursorsOf({ cursors }: SweepParts, signal: AbortSignal): Promise<Cursor[]> {
  const names = await cursors.names(signal);
  const all = await Promise.all(names.map((name) => cursors.get(name, signal)));
  return all.filter((cursor) => cursor !== undefined);
}

/** Those that only the group names: trajectories, changes, and its own where it is too large for a message. */
const blobsOf = ({ claim }: StoredGroup, { sessions }: GroupReady): string[] => [
  ...sessions.flatMap(({ trajectory, graded }) =>
    [trajectory, graded?.changes].flatMap((blob) => blob?.sha256 ?? []),
  ),
  ...(claim === undefined ? [] : [claim]),
];
