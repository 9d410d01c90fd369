// After a loss of power the trajectory stream may have lost its end, and given the ids of what it lost to other groups: a
// consumer that was sent what is gone is set back, or it would never be sent those.
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../common/clock.ts';
import { STREAM_POLL_MS } from '../../common/limits.ts';
import { clamped, sentEver } from '../domain/cursor.ts';
import { cursorClamped } from '../events.ts';
import { present, type StreamParts } from '../streams/stream-parts.ts';
import type { Place, TrajectoryLog } from '../streams/trajectory-log.ts';

/** Whether the stream has this group, or had it and it was removed: what is behind it came after it. */
export async function isKept(log: TrajectoryLog, place: Place, signal: AbortSignal): Promise<boolean> {
  const { batchId, storedMs } = place;
  if (storedMs === 0) return true;
  // A leader of the stream that was just elected may not have all of it yet: what is gone is gone at a second look, too.
  for (const isAgain of [false, true]) {
    if (isAgain) await sleep(STREAM_POLL_MS, signal);
    const stored = await log.at(batchId, signal);
    if (stored !== undefined) return stored.storedMs === storedMs;
    if (batchId <= (await log.lastBatchId(signal))) return true;
  }
  return false;
}

/** The last batch of what a consumer was sent that is not lost; undefined where none is. */
async function lastKept(
  log: TrajectoryLog,
  cursor: Cursor,
  signal: AbortSignal,
): Promise<bigint | undefined> {
  const last = await log.lastBatchId(signal);
  const mark = markOf(cursor);
  if (await isKept(log, mark, signal)) return sentEver(cursor) > last ? BigInt(last) : undefined;
  // What has come since the loss is younger than what was sent before it.
  const next = await log.firstAt(new Date(mark.storedMs + 1), signal);
  return BigInt(Math.min(last, next - 1));
}

const markOf = ({ markBatchId, markStoredMs }: Cursor): Place => ({
  batchId: Number(markBatchId),
  storedMs: Number(markStoredMs),
});

/** The last batch that it was sent, as far as it is known. */
export const placeOf = (cursor: Cursor): Place =>
  cursor.markBatchId === cursor.sent ? markOf(cursor) : { batchId: Number(cursor.sent), storedMs: 0 };

/** Where something of what the consumer was sent is lost. Throws NOT_FOUND. */
export async function setBack(
  { cursors, trajectories, log }: Pick<StreamParts, 'cursors' | 'trajectories' | 'log'>,
  consumer: string,
  signal: AbortSignal,
): Promise<void> {
  const before = present(await cursors.get(consumer, signal), consumer);
  // Read after the cursor, which is moved on meanwhile: only what was sent before can show a loss.
  const last = await lastKept(trajectories, before, signal);
  if (last === undefined) return;
  cursorClamped(log, consumer, before.sent, last);
  const change = (now: Cursor | undefined): Cursor => {
    const cursor = present(now, consumer);
    // Else another process has set it back, or somebody has sought it.
    return cursor.seeks === before.seeks ? clamped(cursor, last) : cursor;
  };
  await cursors.update(consumer, change, signal);
}
