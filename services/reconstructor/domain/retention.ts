// What may leave the store.
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { unackedOf } from './cursor.ts';

/** Every consumer that the batch is for has acknowledged it, and there is one. */
export function isDone(batchId: number, taskId: string, cursors: readonly Cursor[]): boolean {
  const id = BigInt(batchId);
  const readers = cursors.filter((cursor) => cursor.taskId === '' || cursor.taskId === taskId);
  return readers.length > 0 && readers.every((one) => id <= one.sent && unackedOf(one, id) === undefined);
}
