// What a named consumer was sent and has acknowledged. Every function gives a new cursor, or the same one when nothing
// changes, so that it can be tried again after a lost compare-and-set.
import { create } from '@bufbuild/protobuf';
import { type Cursor, CursorSchema, type UnackedBatch } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../../common/errors.ts';

/** Batches of one consumer that were given back and wait to come again; above: NACKS_LIMIT. */
export const NACKED_BATCHES_MAX = 1_000;
/** Longest delay of a batch that is given back, and text that says why; above: INVALID_REQUEST. */
export const NACK_DELAY_MAX_MS = 86_400_000;
export const NACK_REASON_CHARS_MAX = 128;
/** Such texts of one consumer together; above, they are left out. The cursor is one message, of at most 1 MiB. */
const NACK_REASONS_BYTES_MAX = 512 * 1024;

/** Names of consumers. */
export const CONSUMER_PATTERN = /^[a-z0-9-]{1,32}$/;

/**
 * A consumer that has not been sent anything. One that is made anew behind its deletion has more `seeks` than before: a
 * trainer that was not connected meanwhile learns that what it holds and has acknowledged no longer counts.
 */
export const newCursor = (taskId: string, madeMs: number): Cursor =>
  create(CursorSchema, { taskId, seeks: BigInt(madeMs) });

/** A copy to be changed. Its batches are those of the cursor that it was made from: one that changes is replaced. */
export const copied = (cursor: Cursor): Cursor => ({
  ...cursor,
  members: cursor.members.map((member) => ({ ...member })),
  unacked: [...cursor.unacked],
  droppedGroups: { ...cursor.droppedGroups },
  droppedSessions: { ...cursor.droppedSessions },
});

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

/**
 * Acknowledged, as they came after so many seeks; again is no change, and after a further seek neither. Throws
 * INVALID_REQUEST for a batch that was never sent, and changes nothing then.
 */
export function acked(cursor: Cursor, batchIds: readonly bigint[], seeks = cursor.seeks): Cursor {
  if (seeks < cursor.seeks) return cursor;
  checkSent(cursor, batchIds);
  const ids = new Set(batchIds);
  if (!cursor.unacked.some((batch) => ids.has(batch.batchId))) return cursor;
  const next = copied(cursor);
  for (const batch of next.unacked) if (ids.has(batch.batchId)) count(next, batch);
  next.unacked = next.unacked.filter((batch) => !ids.has(batch.batchId));
  return next;
}

/** What was dropped counts when it is acknowledged: once, and as it was sent last. */
function count(cursor: Cursor, { droppedReason, droppedSessions }: UnackedBatch): void {
  const add = (counts: Record<string, bigint>, reason: string, more: number): void => {
    counts[reason] = (counts[reason] ?? 0n) + BigInt(more);
  };
  if (droppedReason !== '') add(cursor.droppedGroups, droppedReason, 1);
  for (const [reason, sessions] of Object.entries(droppedSessions)) {
    add(cursor.droppedSessions, reason, sessions);
  }
}

/** What is given back, and how. */
export interface Nack {
  readonly batchIds: readonly bigint[];
  /** Of each, the delivery that is given back; 0, or none at all: whichever. */
  readonly deliveryCounts: readonly number[];
  /** 0: at once. */
  readonly delayMs: number;
  readonly nowMs: number;
  readonly reason: string;
}

/**
 * Given back, to be sent again when the delay is over. What waits to come again, is acknowledged, or was sent again since
 * the delivery that is given back, is left as it is.
 */
export function nacked(cursor: Cursor, nack: Nack): Cursor {
  const { batchIds, deliveryCounts, reason } = nack;
  checkSent(cursor, batchIds);
  const upTo = new Map(batchIds.map((id, i) => [id, deliveryCounts[i] || Number.POSITIVE_INFINITY]));
  const isGiven = (batch: UnackedBatch): boolean =>
    batch.deliveries <= (upTo.get(batch.batchId) ?? 0) && !isNacked(batch);
  const given = new Set(cursor.unacked.filter(isGiven));
  if (given.size === 0) return cursor;
  const others = cursor.unacked.reduce((sum, one) => sum + (given.has(one) ? 0 : bytesOf(one.nackReason)), 0);
  const hasRoom = others + given.size * bytesOf(reason) <= NACK_REASONS_BYTES_MAX;
  const change = { member: 0, nackReason: hasRoom ? reason : '', notBeforeMs: dueMs(nack) };
  const next = copied(cursor);
  next.unacked = next.unacked.map((batch) =>
    given.has(batch) ? { ...batch, ...change, nacks: batch.nacks + 1 } : batch,
  );
  if (nackedCount(next) <= NACKED_BATCHES_MAX) return next;
  const message = `more than NACKED_BATCHES_MAX (${NACKED_BATCHES_MAX}) batches would wait to come again`;
  throw new PolarError('NACKS_LIMIT', message);
}

/** Another process may be the one that sends it, by a clock of its own: what need not wait is due by any clock. */
const dueMs = ({ delayMs, nowMs }: Nack): bigint => (delayMs === 0 ? 1n : BigInt(nowMs + delayMs));

const isHeldBy =
  (nack: Nack) =>
  ({ batchId, notBeforeMs }: UnackedBatch): boolean =>
    notBeforeMs === dueMs(nack) && nack.batchIds.includes(batchId);

/** A batch waits for the end of this delay. */
export const waitsUntil = ({ unacked }: Cursor, nack: Nack): boolean => unacked.some(isHeldBy(nack));

/** What still waits for the end of this delay need not any longer, by any clock. */
export function released(cursor: Cursor, nack: Nack): Cursor {
  if (!waitsUntil(cursor, nack)) return cursor;
  const isHeld = isHeldBy(nack);
  const next = copied(cursor);
  next.unacked = next.unacked.map((batch) => (isHeld(batch) ? { ...batch, notBeforeMs: 1n } : batch));
  return next;
}

const bytesOf = (text: string): number => (text === '' ? 0 : Buffer.byteLength(text));

const isNacked = (batch: UnackedBatch): boolean => batch.notBeforeMs > 0n;

/** Batches that were given back and have not come again. */
export const nackedCount = (cursor: Cursor): number => cursor.unacked.filter(isNacked).length;

/** Everything up to `floor` counts as acknowledged, everything behind it comes, also what came before. */
export function sought(cursor: Cursor, floor: bigint): Cursor {
  const next = copied(cursor);
  next.sent = floor;
  next.sentCount = 0n;
  next.unacked = [];
  next.seeks++;
  return next;
}

/**
 * The stream has lost what it had behind `lastBatchId`: what comes there is new. As behind a seek, what was received before
 * no longer counts, nor what is about to be sent; of the rest, what was not acknowledged comes again.
 */
export function clamped(cursor: Cursor, lastBatchId: bigint): Cursor {
  if (sentEver(cursor) <= lastBatchId) return cursor;
  const next = copied(cursor);
  if (next.sent > lastBatchId) next.sent = lastBatchId;
  next.sentEver = lastBatchId;
  next.markBatchId = 0n;
  next.markStoredMs = 0n;
  next.unacked = next.unacked
    .filter((batch) => batch.batchId <= lastBatchId)
    .map((batch) => ({ ...batch, member: 0 }));
  next.seeks++;
  return next;
}

/** Largest batch id that was ever sent. */
export const sentEver = ({ sent, sentEver }: Cursor): bigint => (sent > sentEver ? sent : sentEver);

/** The batch was sent and not acknowledged. */
export const unackedOf = ({ sent, unacked }: Cursor, batchId: bigint): UnackedBatch | undefined =>
  batchId > sent ? undefined : unacked.find((batch) => batch.batchId === batchId);

/** Whether a batch that was ever sent can have this id. */
export const inSentRange = (cursor: Cursor, batchId: bigint): boolean =>
  batchId > 0n && batchId <= sentEver(cursor);

/** Throws INVALID_REQUEST, naming the first id that is none of a batch that was sent. */
function checkSent(cursor: Cursor, batchIds: readonly bigint[]): void {
  const unknown = batchIds.find((batchId) => !inSentRange(cursor, batchId));
  if (unknown !== undefined) throw neverSent(unknown, `largest batch sent is ${sentEver(cursor)}`);
}

/** A batch of nobody, or of another consumer. */
export const neverSent = (batchId: bigint, description: string): PolarError =>
  new PolarError('INVALID_REQUEST', `batch ${batchId} was never sent to this consumer`, {
    fields: [{ field: 'batch_ids', description }],
  });
