// What the RPCs on a named consumer have in common.
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { UNACKED_BATCHES_MAX } from '../../common/limits.ts';
import { CONSUMER_PATTERN, inSentRange, neverSent, unackedOf } from '../domain/cursor.ts';
import type { StreamParts } from '../streams/stream-parts.ts';

/** Changes the cursor of a consumer that is there. Throws NOT_FOUND, and what `change` throws. */
export async function changeCursor(
  { cursors }: Pick<StreamParts, 'cursors'>,
  consumer: string,
  change: (cursor: Cursor) => Cursor,
  signal: AbortSignal,
): Promise<Cursor> {
  checkName(consumer);
  const known = (cursor: Cursor | undefined): Cursor => {
    if (cursor === undefined) throw noConsumer(consumer);
    return change(cursor);
  };
  return await cursors.update(consumer, known, signal);
}

/** Throws NOT_FOUND for what is no name: it would be looked for as a pattern of names. */
export function checkName(consumer: string): void {
  if (!CONSUMER_PATTERN.test(consumer)) throw noConsumer(consumer);
}

export const noConsumer = (consumer: string): PolarError =>
  new PolarError('NOT_FOUND', `no consumer ${consumer}: it is made by its first stream`);

/** Throws INVALID_REQUEST for more ids than one call may name. */
export function checkCount(method: string, batchIds: readonly bigint[]): void {
  if (batchIds.length <= UNACKED_BATCHES_MAX) return;
  throw faulty('INVALID_REQUEST', method, [
    { field: 'batch_ids', description: `must be at most ${UNACKED_BATCHES_MAX}` },
  ]);
}

/**
 * A consumer of one task is sent no other's batches: throws INVALID_REQUEST for one of those, NOT_FOUND. Ids that no
 * batch can have pass: the change that they are for refuses them.
 */
export async function checkTask(
  { cursors, trajectories }: Pick<StreamParts, 'cursors' | 'trajectories'>,
  consumer: string,
  batchIds: readonly bigint[],
  signal: AbortSignal,
): Promise<void> {
  checkName(consumer);
  const known = cursors.known(consumer);
  // What this process remembers may be older than what another one has sent.
  const isRecent = known !== undefined && batchIds.every((batchId) => inSentRange(known, batchId));
  const cursor = isRecent ? known : await cursors.get(consumer, signal);
  if (cursor === undefined || cursor.taskId === '') return;
  for (const batchId of batchIds.filter((one) => inSentRange(cursor, one))) {
    // What waits for an acknowledgement is its own; else it was acknowledged before, or is nothing of it.
    if (unackedOf(cursor, batchId) !== undefined) continue;
    const stored = await trajectories.at(Number(batchId), signal);
    if (stored !== undefined && stored.taskId !== cursor.taskId) {
      throw neverSent(batchId, `it is of task ${stored.taskId}, the consumer of ${cursor.taskId}`);
    }
  }
}
