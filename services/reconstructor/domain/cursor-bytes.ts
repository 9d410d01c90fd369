// A cursor as it is stored. It is written with each message and each acknowledgement, and nearly all of it is what has been
// written before: batches that are not acknowledged, which never change (cursor.ts), are encoded once.
import { toBinary } from '@bufbuild/protobuf';
import {
  type Cursor,
  CursorSchema,
  type UnackedBatch,
  UnackedBatchSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { field } from './stored.ts';

const UNACKED = CursorSchema.field.unacked.number;
const encoded = new WeakMap<UnackedBatch, Uint8Array>();

/** The binary form of a cursor. */
export function cursorBytes(cursor: Cursor): Uint8Array {
  const head = toBinary(CursorSchema, { ...cursor, unacked: [] });
  return Buffer.concat([head, ...cursor.unacked.map(bytesOf)]);
}

function bytesOf(batch: UnackedBatch): Uint8Array {
  let bytes = encoded.get(batch);
  if (bytes === undefined) {
    bytes = Buffer.concat(field(UNACKED, [toBinary(UnackedBatchSchema, batch)]));
    encoded.set(batch, bytes);
  }
  return bytes;
}
