// The streams that read a consumer: one, the newest, or several that share it. A batch goes to one of them, and may be
// sent again when that one is gone.
import { clone, create } from '@bufbuild/protobuf';
import {
  type Cursor,
  type CursorMember,
  CursorMemberSchema,
  CursorSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../../common/errors.ts';
import { STREAM_PROGRESS_MS } from '../../common/limits.ts';

/** Streams that share one consumer; above: STREAMS_LIMIT. */
export const CONSUMER_STREAMS_MAX = 64;
/** A stream of a shared consumer that was not seen for so long is lost: its batches go to the others. */
export const STREAM_LOST_MS = STREAM_PROGRESS_MS * 3;

/** An open stream. */
export interface StreamRef {
  readonly streamId: string;
  readonly shared: boolean;
}

/** A stream is opened: beside the others where all share, else in their place. Throws STREAMS_LIMIT. */
export function opened(cursor: Cursor, { streamId, shared }: StreamRef, nowMs: number): Cursor {
  // It may have been written before, and the answer lost.
  if (find(cursor, streamId) !== undefined) return cursor;
  const next = clone(CursorSchema, cursor);
  if (!(shared && next.shared)) next.members = [];
  if (next.members.length >= CONSUMER_STREAMS_MAX) {
    // Where all have died, none is left to see the others gone.
    next.members = next.members.filter((member) => isConnected(member, nowMs));
  }
  if (next.members.length >= CONSUMER_STREAMS_MAX) {
    throw new PolarError('STREAMS_LIMIT', `${CONSUMER_STREAMS_MAX} streams share this consumer already`);
  }
  next.shared = shared;
  next.lastMember++;
  const number = next.lastMember;
  next.members.push(create(CursorMemberSchema, { number, streamId, seenMs: BigInt(nowMs) }));
  return next;
}

/** The stream is still there. Throws STREAM_REPLACED or STREAM_LAPSED. */
export function seen(cursor: Cursor, stream: StreamRef, nowMs: number): Cursor {
  const next = clone(CursorSchema, cursor);
  memberOf(next, stream).seenMs = BigInt(nowMs);
  return next;
}

/** These streams have ended, or are lost; what was sent to them may be sent again. */
export function closed(cursor: Cursor, ...streamIds: string[]): Cursor {
  const stay = cursor.members.filter((member) => !streamIds.includes(member.streamId));
  if (stay.length === cursor.members.length) return cursor;
  const next = clone(CursorSchema, cursor);
  next.members = stay;
  return next;
}

/** Streams that have been seen lately; one whose process was killed is not seen again. */
export const connectedStreams = (cursor: Cursor, nowMs: number): number =>
  cursor.members.filter((member) => isConnected(member, nowMs)).length;

const isConnected = ({ seenMs }: CursorMember, nowMs: number): boolean =>
  nowMs - Number(seenMs) < STREAM_LOST_MS;

/** The stream's own place. Throws STREAM_REPLACED, or STREAM_LAPSED where the others took it for lost. */
export function memberOf(cursor: Cursor, { streamId, shared }: StreamRef): CursorMember {
  const member = find(cursor, streamId);
  if (member !== undefined) return member;
  if (shared && cursor.shared) {
    throw new PolarError('STREAM_LAPSED', `the stream was not seen for ${STREAM_LOST_MS} ms: open it again`);
  }
  throw new PolarError('STREAM_REPLACED', 'another stream of this consumer was opened');
}

const find = (cursor: Cursor, streamId: string): CursorMember | undefined =>
  cursor.members.find((member) => member.streamId === streamId);
