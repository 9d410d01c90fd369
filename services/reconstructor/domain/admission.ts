// Which batches a stream may send: those that nobody holds and that its credit has room for.
import { create } from '@bufbuild/protobuf';
import {
  type Cursor,
  type UnackedBatch,
  UnackedBatchSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { copied, sentEver, unackedOf } from './cursor.ts';
import { memberOf, type StreamRef } from './members.ts';

/** Batches of one consumer that are not acknowledged, all its streams together; then nothing new is sent. */
const CURSOR_UNACKED_MAX = 4_000;

/** What a stream may have sent and not yet acknowledged. */
export interface Credit {
  readonly maxUnacked: number;
  /** Token ids; 0: no limit. One batch is let out in any case. */
  readonly maxUnackedTokens: bigint;
}

/** A batch that is ready to be sent. */
export interface Candidate {
  readonly batchId: bigint;
  /** Unix time at which it was stored, by the clock of NATS. */
  readonly storedMs: number;
  readonly tokens: number;
  /** Empty: it is whole. */
  readonly droppedReason: string;
  readonly droppedSessions: Readonly<Record<string, number>>;
}

export interface Admission {
  /** The cursor that is to be written before they are sent. */
  readonly cursor: Cursor;
  /** What may be sent, by batch id; the others are not this stream's to send, or have no room. */
  readonly admitted: ReadonlyMap<bigint, UnackedBatch>;
  /** A candidate had no room. */
  readonly full: boolean;
}

/** Ids of batches to be sent again, oldest first: nobody holds them, and they need not wait. */
export function againIds(cursor: Cursor, nowMs: number): bigint[] {
  if (cursor.unacked.length === 0) return [];
  const isFree = freeIn(cursor, nowMs);
  return cursor.unacked.filter(isFree).map((batch) => batch.batchId);
}

/** When the next batch that was given back may be sent; undefined: none waits. */
export function nextDueMs(cursor: Cursor, nowMs: number): number | undefined {
  const waiting = cursor.unacked.map((batch) => Number(batch.notBeforeMs)).filter((ms) => ms > nowMs);
  return waiting.length === 0 ? undefined : Math.min(...waiting);
}

/**
 * Admits the first candidates, in order, as far as the credit goes. `seeks` is the cursor's when they were chosen: a
 * seek makes all of them void. Throws STREAM_REPLACED or STREAM_LAPSED.
 */
export function admit(
  cursor: Cursor,
  stream: StreamRef,
  seeks: bigint,
  candidates: readonly Candidate[],
  credit: Credit,
  nowMs: number,
): Admission {
  const { number } = memberOf(cursor, stream);
  const admitted = new Map<bigint, UnackedBatch>();
  if (cursor.seeks !== seeks) return { cursor, admitted, full: false };
  const next = copied(cursor);
  memberOf(next, stream).seenMs = BigInt(nowMs);
  const isFree = freeIn(cursor, nowMs);
  const room = roomOf(next, number, credit);
  let changed = false;
  for (const candidate of candidates) {
    const known = unackedOf(next, candidate.batchId);
    // Written before, and the answer lost.
    if (known?.member === number) {
      admitted.set(candidate.batchId, known);
      continue;
    }
    if (known === undefined ? candidate.batchId <= next.sent : !isFree(known)) continue;
    const isFull = known === undefined && next.unacked.length >= CURSOR_UNACKED_MAX;
    if (isFull || !room.take(candidate.tokens)) {
      return { cursor: changed ? next : cursor, admitted, full: true };
    }
    admitted.set(candidate.batchId, record(next, known, candidate, number));
    changed = true;
  }
  return { cursor: changed ? next : cursor, admitted, full: false };
}

/** Whether a batch may be sent again. */
function freeIn(cursor: Cursor, nowMs: number): (batch: UnackedBatch) => boolean {
  const members = new Set(cursor.members.map((member) => member.number));
  return (batch) => !members.has(batch.member) && Number(batch.notBeforeMs) <= nowMs;
}

function roomOf(cursor: Cursor, number: number, credit: Credit): { take(tokens: number): boolean } {
  const mine = cursor.unacked.filter((batch) => batch.member === number);
  let batches = mine.length;
  let sum = mine.reduce((all, batch) => all + Number(batch.tokens), 0);
  const limit = credit.maxUnackedTokens === 0n ? Number.POSITIVE_INFINITY : Number(credit.maxUnackedTokens);
  return {
    take(tokens) {
      if (batches >= credit.maxUnacked || (batches > 0 && sum + tokens > limit)) return false;
      batches++;
      sum += tokens;
      return true;
    },
  };
}

function record(
  cursor: Cursor,
  known: UnackedBatch | undefined,
  candidate: Candidate,
  member: number,
): UnackedBatch {
  const { tokens, droppedReason, droppedSessions } = candidate;
  const place = known ?? first(cursor, candidate);
  const batch: UnackedBatch = {
    ...place,
    deliveries: place.deliveries + 1,
    member,
    notBeforeMs: 0n,
    tokens: BigInt(tokens),
    droppedReason,
    droppedSessions: { ...droppedSessions },
  };
  cursor.unacked[cursor.unacked.lastIndexOf(place)] = batch;
  return batch;
}

/** Its place in the cursor. What came before a seek, or was skipped by one, counts as sent once. */
function first(cursor: Cursor, { batchId, storedMs }: Candidate): UnackedBatch {
  const ever = sentEver(cursor);
  cursor.sentCount++;
  const deliveries = batchId <= ever ? 1 : 0;
  const batch = create(UnackedBatchSchema, { batchId, ordinal: cursor.sentCount, deliveries });
  cursor.unacked.push(batch);
  cursor.sent = batchId;
  cursor.sentEver = batchId > ever ? batchId : ever;
  if (batchId > ever) {
    cursor.markBatchId = batchId;
    cursor.markStoredMs = BigInt(storedMs);
  }
  return batch;
}
