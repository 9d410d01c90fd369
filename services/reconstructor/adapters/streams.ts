// Streams of batches to named consumers: what was sent before and not acknowledged, then what comes.
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { TrajectoryBatch } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { sleep } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { CONSUMERS_MAX, STREAM_CLOSE_MS, STREAM_POLL_MS, STREAM_PROGRESS_MS } from '../../common/limits.ts';
import { clamped, closed, newCursor, opened, seen } from '../domain/cursor.ts';
import { cursorClamped, streamEnded, streamOpened } from '../events.ts';
import { deliver, type StreamParts, type StreamRequest } from './delivery.ts';

/** Each yield is a batch, or undefined for progress only. */
export type TrajectoryStream = AsyncGenerator<TrajectoryBatch | undefined, void>;

export class Streams {
  readonly #parts: StreamParts;
  /** By consumer: those of this process, so that a newer one ends the older at once. */
  readonly #open = new Map<string, AbortController>();

  constructor(parts: StreamParts) {
    this.#parts = parts;
  }

  /** Ends only by the signal or with STREAM_REPLACED. Throws INVALID_REQUEST or CONSUMERS_LIMIT before the first yield. */
  async *open(request: StreamRequest, signal: AbortSignal): TrajectoryStream {
    const { log } = this.#parts;
    const streamId = newId('stream');
    const cursor = await this.#takeOver(request, streamId, signal);
    const end = new AbortController();
    this.#open.get(request.consumer)?.abort(replaced());
    this.#open.set(request.consumer, end);
    const ended = AbortSignal.any([signal, end.signal]);
    const holding = this.#hold(request.consumer, streamId, end);
    streamOpened(log, request.consumer, cursor);
    let reason: unknown;
    try {
      // Tells the caller that the stream is open.
      yield undefined;
      yield* withProgress(deliver(this.#parts, request, streamId, cursor, ended));
    } catch (error) {
      reason = end.signal.aborted ? end.signal.reason : error;
      throw reason;
    } finally {
      end.abort();
      await holding;
      if (this.#open.get(request.consumer) === end) this.#open.delete(request.consumer);
      await this.#note(request.consumer, streamId);
      streamEnded(log, request.consumer, reason === undefined ? undefined : asPolarError(reason));
    }
  }

  async #takeOver(request: StreamRequest, streamId: string, signal: AbortSignal): Promise<Cursor> {
    const { cursors, trajectories, log } = this.#parts;
    const { consumer, taskId } = request;
    const before = await cursors.get(consumer, signal);
    if (before === undefined && (await cursors.names(signal)).length >= CONSUMERS_MAX) {
      throw new PolarError('CONSUMERS_LIMIT', `there are ${CONSUMERS_MAX} consumers: use one that is there`);
    }
    // Read after the cursor, which an older stream may still move on: only what was sent before can show a loss.
    const last = BigInt(await trajectories.lastBatchId(signal));
    const lost = before !== undefined && before.sent > last;
    if (lost) cursorClamped(log, consumer, before.sent, last);
    const take = (cursor: Cursor | undefined): Cursor => {
      const known = cursor ?? newCursor(taskId);
      if (known.taskId !== taskId) throw otherTask(known.taskId);
      return opened(lost ? clamped(known, last) : known, streamId, Date.now());
    };
    return await cursors.update(consumer, take, signal);
  }

  /** Writes now and then that the stream is open, and sees that another process has taken over. */
  async #hold(consumer: string, streamId: string, end: AbortController): Promise<void> {
    const { cursors } = this.#parts;
    let seenAt = performance.now();
    for (;;) {
      await sleep(STREAM_POLL_MS, end.signal);
      if (end.signal.aborted) return;
      try {
        const cursor = await cursors.get(consumer, end.signal);
        if (cursor?.streamId !== streamId) throw replaced();
        if (performance.now() - seenAt < STREAM_PROGRESS_MS) continue;
        await cursors.update(consumer, (now) => seen(now ?? cursor, streamId, Date.now()), end.signal);
        seenAt = performance.now();
      } catch (error) {
        // An absent NATS does not end a stream.
        if (asPolarError(error).reason === 'STREAM_REPLACED') return end.abort(error);
      }
    }
  }

  async #note(consumer: string, streamId: string): Promise<void> {
    const change = (cursor: Cursor | undefined): Cursor => {
      if (cursor === undefined) throw replaced();
      return closed(cursor, streamId);
    };
    const signal = AbortSignal.timeout(STREAM_CLOSE_MS);
    // Without the note the consumer shows as connected for a while, and nothing else.
    await this.#parts.cursors.update(consumer, change, signal).catch(() => {});
  }
}

/** Adds an undefined wherever nothing has come for STREAM_PROGRESS_MS. */
async function* withProgress(batches: AsyncGenerator<TrajectoryBatch, void>): TrajectoryStream {
  let next = batches.next();
  for (;;) {
    next.catch(() => {});
    const timer = new AbortController();
    const first = await Promise.race([next, sleep(STREAM_PROGRESS_MS, timer.signal)]).finally(() =>
      timer.abort(),
    );
    if (first === undefined) {
      yield undefined;
      continue;
    }
    if (first.done === true) return;
    yield first.value;
    next = batches.next();
  }
}

const replaced = (): PolarError =>
  new PolarError('STREAM_REPLACED', 'another stream of this consumer was opened');

const otherTask = (taskId: string): PolarError =>
  new PolarError('INVALID_REQUEST', 'task_id is fixed at the first use of a consumer: use another name', {
    fields: [{ field: 'task_id', description: taskId === '' ? 'must be empty' : `must be ${taskId}` }],
  });
