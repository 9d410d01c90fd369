// What a named consumer was sent and has acknowledged. Every function gives a new cursor, or the same one when nothing
// changes, so that it can be tried again after a lost compare-and-set.
import { clone, create } from '@bufbuild/protobuf';
import { type Cursor, CursorSchema, UnackedBatchSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../../common/errors.ts';
import { STREAM_PROGRESS_MS } from '../../common/limits.ts';

/** Names of consumers. */
export const CONSUMER_PATTERN = /^[a-z0-9-]{1,32}$/;

/** A consumer that has not been sent anything. */
export const newCursor = (taskId: string): Cursor => create(CursorSchema, { taskId });

/** All batches up to this id are acknowledged. */
export function floorOf(cursor: Cursor): bigint {
  const first = cursor.unacked[0];
  return first === undefined ? cursor.sent : first.batchId - 1n;
}

/** Batches acknowledged above the floor. */
export function ackedAboveFloor(cursor: Cursor): number {
  const first = cursor.unacked[0];
  if (first === undefined) return 0;
  return Number(cursor.sentCount - first.ordinal) + 1 - cursor.unacked.length;
}

/** A new stream takes over; an older one finds another id than its own. */
export function opened(cursor: Cursor, streamId: string, nowMs: number): Cursor {
  const next = clone(CursorSchema, cursor);
  next.streamId = streamId;
  next.seenMs = BigInt(nowMs);
  return next;
}

/** The stream is still there. Throws STREAM_REPLACED. */
export function seen(cursor: Cursor, streamId: string, nowMs: number): Cursor {
  return opened(held(cursor, streamId), streamId, nowMs);
}

/** The stream has ended, unless another one has taken over. */
export function closed(cursor: Cursor, streamId: string): Cursor {
  return cursor.streamId === streamId ? opened(cursor, '', Number(cursor.seenMs)) : cursor;
}

/** A stream is open and has been seen lately; one whose process was killed is not seen again. */
export const isConnected = (cursor: Cursor, nowMs: number): boolean =>
  cursor.streamId !== '' && nowMs - Number(cursor.seenMs) < STREAM_PROGRESS_MS * 3;

/** The batch is about to be sent. Throws STREAM_REPLACED. */
export function sent(cursor: Cursor, streamId: string, batchId: bigint, nowMs: number): Cursor {
  if (batchId <= held(cursor, streamId).sent) return cursor;
  const next = opened(cursor, streamId, nowMs);
  next.sent = batchId;
  next.sentCount++;
  next.unacked.push(create(UnackedBatchSchema, { batchId, ordinal: next.sentCount }));
  return next;
}

/** Acknowledged; again is no change. Throws INVALID_REQUEST for a batch that was never sent. */
export function acked(cursor: Cursor, batchIds: readonly bigint[]): Cursor {
  const unknown = batchIds.find((batchId) => batchId > cursor.sent);
  if (unknown !== undefined) {
    throw new PolarError('INVALID_REQUEST', `batch ${unknown} was never sent to this consumer`, {
      fields: [{ field: 'batch_ids', description: `largest batch sent is ${cursor.sent}` }],
    });
  }
  const ids = new Set(batchIds);
  if (!cursor.unacked.some((batch) => ids.has(batch.batchId))) return cursor;
  const next = clone(CursorSchema, cursor);
  next.unacked = next.unacked.filter((batch) => !ids.has(batch.batchId));
  return next;
}

/** After a loss of power the stream may end before what was sent: batches that are gone are forgotten. */
export function clamped(cursor: Cursor, lastBatchId: bigint): Cursor {
  if (cursor.sent <= lastBatchId) return cursor;
  const next = clone(CursorSchema, cursor);
  next.sent = lastBatchId;
  next.unacked = next.unacked.filter((batch) => batch.batchId <= lastBatchId);
  return next;
}

/** The batch was sent and not acknowledged. */
export const isUnacked = (cursor: Cursor, batchId: bigint): boolean =>
  cursor.unacked.some((batch) => batch.batchId === batchId);

function held(cursor: Cursor, streamId: string): Cursor {
  if (cursor.streamId === streamId) return cursor;
  throw new PolarError('STREAM_REPLACED', 'another stream of this consumer was opened, or it ended');
}
