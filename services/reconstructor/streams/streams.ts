// Streams of batches to named consumers: what was sent before and not acknowledged, then what comes.
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { CONSUMERS_MAX, STREAM_PROGRESS_MS } from '../../common/limits.ts';
import { setBack } from '../cursors/lost-end.ts';
import { newCursor } from '../domain/cursor.ts';
import { closed, opened, type StreamRef } from '../domain/members.ts';
import { streamEnded, streamOpened } from '../events.ts';
import { deliver, type Parcel } from './delivery.ts';
import { hold } from './hold.ts';
import { present, type StreamParts, type StreamRequest } from './stream-parts.ts';
import { Supplies } from './supply.ts';
import type { Wakeup } from './wakeup.ts';

/** What a stream that ends gives the note of it in its cursor; then it shows as connected for a while. */
const STREAM_CLOSE_MS = 1_000;

/** Why a wait is not needed any more; without a reason each would make an error with a stack. */
const OVER = 'over';

/** Each yield is a parcel of batches, or undefined for progress only. */
export type TrajectoryStream = AsyncGenerator<Parcel | undefined, void>;

export class Streams {
  readonly #parts: StreamParts;
  readonly #supplies: Supplies;
  /** By consumer: those of this process, so that a newer one ends the older at once. */
  readonly #open = new Map<string, Set<{ readonly stream: StreamRef; readonly end: AbortController }>>();

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.#supplies = new Supplies(parts);
  }

  /** Those that are open in this process. */
  get count(): number {
    return [...this.#open.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /**
   * Ends only by the signal, or with NOT_FOUND, STREAM_REPLACED or STREAM_LAPSED. Throws INVALID_REQUEST,
   * CONSUMERS_LIMIT or STREAMS_LIMIT before the first yield.
   */
  async *open(request: StreamRequest, signal: AbortSignal): TrajectoryStream {
    const { log, policy } = this.#parts;
    const { consumer, shared } = request;
    const stream = { streamId: newId('stream'), shared };
    const cursor = await this.#join(request, stream, signal);
    const end = new AbortController();
    const place = this.#enter(consumer, stream, end);
    const ended = AbortSignal.any([signal, end.signal]);
    const holding = hold(this.#parts, consumer, stream, end);
    const supply = this.#supplies.join(request);
    streamOpened(log, consumer, cursor);
    let reason: unknown;
    try {
      const { count } = policy.changed;
      // Tells the caller that the stream is open.
      yield { batches: [], memory: [], seeks: cursor.seeks };
      yield* withProgress(deliver(this.#parts, request, stream, supply, ended), policy.changed, count);
    } catch (error) {
      reason = end.signal.aborted ? end.signal.reason : error;
      throw reason;
    } finally {
      end.abort();
      supply[Symbol.dispose]();
      await holding;
      place[Symbol.dispose]();
      await this.#leave(consumer, stream);
      streamEnded(log, consumer, reason === undefined ? undefined : asPolarError(reason));
    }
  }

  /** Among the streams of this process; those that have no place beside it end. */
  #enter(consumer: string, stream: StreamRef, end: AbortController): Disposable {
    const all = this.#open.get(consumer) ?? new Set();
    for (const other of all) {
      if (!(stream.shared && other.stream.shared)) other.end.abort(replaced());
    }
    const place = { stream, end };
    all.add(place);
    this.#open.set(consumer, all);
    return {
      [Symbol.dispose]: () => {
        all.delete(place);
        if (all.size === 0 && this.#open.get(consumer) === all) this.#open.delete(consumer);
      },
    };
  }

  async #join(request: StreamRequest, stream: StreamRef, signal: AbortSignal): Promise<Cursor> {
    const { cursors } = this.#parts;
    const { consumer, taskId } = request;
    const before = await cursors.get(consumer, signal);
    if (before === undefined && (await this.#isFull(signal))) {
      throw new PolarError('CONSUMERS_LIMIT', `there are ${CONSUMERS_MAX} consumers: use one that is there`);
    }
    if (before !== undefined) await setBack(this.#parts, consumer, signal);
    const join = (cursor: Cursor | undefined): Cursor => {
      const now = Date.now();
      const known = cursor ?? newCursor(taskId, now);
      if (known.taskId !== taskId) throw otherTask(known.taskId);
      return opened(known, stream, now);
    };
    return await cursors.update(consumer, join, signal);
  }

  async #isFull(signal: AbortSignal): Promise<boolean> {
    const { cursors } = this.#parts;
    const names = await cursors.names(signal);
    if (names.length < CONSUMERS_MAX) return false;
    // Some may be marks of deleted ones.
    const all = await Promise.all(names.map((name) => cursors.get(name, signal)));
    return all.filter((cursor) => cursor !== undefined).length >= CONSUMERS_MAX;
  }

  async #leave(consumer: string, { streamId }: StreamRef): Promise<void> {
    const change = (cursor: Cursor | undefined): Cursor => closed(present(cursor, consumer), streamId);
    const signal = AbortSignal.timeout(STREAM_CLOSE_MS);
    // Without the note it shows as connected for a while, and streams that share the consumer wait for its batches.
    await this.#parts.cursors.update(consumer, change, signal).catch(() => {});
  }
}

/**
 * Adds an undefined wherever nothing has come for STREAM_PROGRESS_MS, and when the policy version changes: `told` are the
 * changes before what was sent last, so that one counts that comes while the reader is behind.
 */
async function* withProgress(
  parcels: AsyncGenerator<Parcel, void>,
  versions: Wakeup,
  told: number,
): TrajectoryStream {
  for (let count = told; ; ) {
    const next = parcels.next();
    // Listened to once: each further listener would be kept until a batch comes, which may be days.
    const come = new AbortController();
    const end = (): void => come.abort(OVER);
    next.then(end, end);
    for (;;) {
      await versions.wait(count, STREAM_PROGRESS_MS, come.signal);
      ({ count } = versions);
      if (come.signal.aborted) break;
      yield undefined;
    }
    const parcel = await next;
    if (parcel.done === true) return;
    yield parcel.value;
  }
}

const replaced = (): PolarError =>
  new PolarError('STREAM_REPLACED', 'another stream of this consumer was opened');

const otherTask = (taskId: string): PolarError =>
  new PolarError('INVALID_REQUEST', 'task_id is fixed at the first use of a consumer: use another name', {
    fields: [{ field: 'task_id', description: taskId === '' ? 'must be empty' : `must be ${taskId}` }],
  });
