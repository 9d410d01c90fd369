// One stream's batches in order, as its credit allows.
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { TrajectoryBatch } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { BATCH_AHEAD_BYTES_MAX, STREAM_POLL_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import { acked, isUnacked, sent } from '../domain/cursor.ts';
import { batchRemoved, streamInterrupted } from '../events.ts';
import type { Batches } from './batches.ts';
import type { Cursors } from './cursors.ts';
import type { StoredGroup, TrajectoryLog } from './trajectory-log.ts';

export interface StreamRequest {
  readonly consumer: string;
  /** Batches that may be sent and not yet acknowledged. */
  readonly maxUnacked: number;
  /** Empty: all. */
  readonly taskId: string;
}

export interface StreamParts {
  readonly cursors: Cursors;
  readonly trajectories: TrajectoryLog;
  readonly batches: Batches;
  readonly log: Logger;
}

type Resolved = Awaited<ReturnType<StreamParts['batches']['resolve']>>;

/** Batches that the cursor admits. Ends only by the signal or with STREAM_REPLACED; waits while NATS is away. */
export async function* deliver(
  parts: StreamParts,
  request: StreamRequest,
  streamId: string,
  cursor: Cursor,
  signal: AbortSignal,
): AsyncGenerator<TrajectoryBatch, void> {
  const source = new Source(parts, request, cursor, signal);
  const credit = new Credit(parts, request, streamId, signal);
  for (let ahead: Promise<Resolved> | undefined; ; ) {
    const { batch, sizeBytes } = await (ahead ?? source.next());
    ahead = sizeBytes <= BATCH_AHEAD_BYTES_MAX ? source.next() : undefined;
    ahead?.catch(() => {});
    if (await credit.admit(batch.batchId)) yield batch;
  }
}

/** What is to be sent: first what the cursor says was sent and not acknowledged, then the stream behind that. */
class Source {
  readonly #parts: StreamParts;
  readonly #request: StreamRequest;
  readonly #signal: AbortSignal;
  readonly #cursor: Cursor;
  readonly #again: number[];
  readonly #sentBefore: number;
  #last: number;

  constructor(parts: StreamParts, request: StreamRequest, cursor: Cursor, signal: AbortSignal) {
    this.#parts = parts;
    this.#request = request;
    this.#signal = signal;
    this.#cursor = cursor;
    this.#again = cursor.unacked.map((batch) => Number(batch.batchId));
    this.#sentBefore = Number(cursor.sent);
    this.#last = this.#sentBefore;
  }

  async next(): Promise<Resolved> {
    const stored = await this.#nextStored();
    const redelivered = stored.batchId <= this.#sentBefore;
    return await persistently(this.#parts, this.#signal, () =>
      this.#parts.batches.resolve(stored, redelivered, this.#signal),
    );
  }

  async #nextStored(): Promise<StoredGroup> {
    const { trajectories } = this.#parts;
    const signal = this.#signal;
    for (let batchId = this.#again.shift(); batchId !== undefined; batchId = this.#again.shift()) {
      const known = batchId;
      const stored = await persistently(this.#parts, signal, () => trajectories.at(known, signal));
      if (stored !== undefined) return stored;
      await persistently(this.#parts, signal, () => this.#forget(known));
    }
    for (;;) {
      const { count } = trajectories.published;
      const stored = await persistently(this.#parts, signal, () =>
        trajectories.after(this.#last, this.#request.taskId, signal),
      );
      if (stored !== undefined) {
        this.#last = stored.batchId;
        return stored;
      }
      await trajectories.published.wait(count, STREAM_POLL_MS, signal);
      signal.throwIfAborted();
    }
  }

  /** An operator removed it from the stream: it can neither be sent nor acknowledged. */
  async #forget(batchId: number): Promise<void> {
    const { cursors, log } = this.#parts;
    const { consumer } = this.#request;
    const change = (cursor: Cursor | undefined): Cursor => acked(cursor ?? this.#cursor, [BigInt(batchId)]);
    await cursors.update(consumer, change, this.#signal);
    batchRemoved(log, consumer, batchId);
  }
}

/** Lets a batch out when fewer than `maxUnacked` of this stream are unacknowledged, and writes so before. */
class Credit {
  readonly #parts: StreamParts;
  readonly #request: StreamRequest;
  readonly #streamId: string;
  readonly #signal: AbortSignal;
  #sentHere = new Set<bigint>();

  constructor(parts: StreamParts, request: StreamRequest, streamId: string, signal: AbortSignal) {
    this.#parts = parts;
    this.#request = request;
    this.#streamId = streamId;
    this.#signal = signal;
  }

  /** False when the batch was acknowledged meanwhile. */
  async admit(batchId: bigint): Promise<boolean> {
    const { cursors } = this.#parts;
    for (;;) {
      const { count } = cursors.changed;
      const verdict = await persistently(this.#parts, this.#signal, () => this.#try(batchId));
      if (verdict !== 'full') return verdict === 'sent';
      await cursors.changed.wait(count, STREAM_POLL_MS, this.#signal);
      this.#signal.throwIfAborted();
    }
  }

  async #try(batchId: bigint): Promise<'sent' | 'full' | 'acked'> {
    let verdict: 'sent' | 'full' | 'acked' = 'sent';
    const change = (cursor: Cursor | undefined): Cursor => {
      if (cursor === undefined) throw new PolarError('STREAM_REPLACED', 'the consumer was removed');
      verdict = this.#verdict(cursor, batchId);
      return verdict === 'sent' ? sent(cursor, this.#streamId, batchId, Date.now()) : cursor;
    };
    await this.#parts.cursors.update(this.#request.consumer, change, this.#signal);
    if (verdict === 'sent') this.#sentHere.add(batchId);
    return verdict;
  }

  #verdict(cursor: Cursor, batchId: bigint): 'sent' | 'full' | 'acked' {
    if (batchId <= cursor.sent && !isUnacked(cursor, batchId)) return 'acked';
    const open = cursor.unacked.filter((batch) => this.#sentHere.has(batch.batchId));
    this.#sentHere = new Set(open.map((batch) => batch.batchId));
    return open.length < this.#request.maxUnacked ? 'sent' : 'full';
  }
}

/** Tries until it works: a trainer's stream outlives an absence of NATS of any length. */
async function persistently<T>(
  { log }: StreamParts,
  signal: AbortSignal,
  attempt: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof PolarError && error.retryable)) throw error;
      streamInterrupted(log, error);
    }
    await sleep(STREAM_POLL_MS, signal);
  }
}
