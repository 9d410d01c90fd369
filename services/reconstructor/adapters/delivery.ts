// One stream's batches in order, as its credit allows: what may be sent again first, then the log.
import { create } from '@bufbuild/protobuf';
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { StreamFilter } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  type TrajectoryBatch,
  TrajectoryBatchSchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { STREAM_POLL_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import { type Admission, admit, againIds, type Credit, nextDueMs } from '../domain/admission.ts';
import { acked } from '../domain/cursor.ts';
import { memberOf, type StreamRef } from '../domain/members.ts';
import { type Offer, offerOf } from '../domain/offer.ts';
import { batchDropped, batchRemoved, streamInterrupted } from '../events.ts';
import { Again } from './again.ts';
import { openAhead } from './ahead.ts';
import type { Batches, Resolved, Room } from './batches.ts';
import type { Cursors } from './cursors.ts';
import type { PolicyVersion } from './policy-version.ts';
import type { TrajectoryLog } from './trajectory-log.ts';

/** Batches in one message. */
const MESSAGE_BATCHES_MAX = 256;

export interface StreamRequest {
  readonly consumer: string;
  /** Empty: all. */
  readonly taskId: string;
  readonly credit: Credit;
  /** Token ids up to which batches are put into one message; 0: one batch a message. */
  readonly messageTokens: number;
  readonly shared: boolean;
  readonly filter: StreamFilter | undefined;
}

export interface StreamParts {
  readonly cursors: Cursors;
  readonly trajectories: TrajectoryLog;
  readonly batches: Batches;
  readonly policy: PolicyVersion;
  readonly log: Logger;
}

/** What one message holds. */
export interface Parcel {
  readonly batches: readonly TrajectoryBatch[];
  /** What their traces lie in, and nothing else does. */
  readonly memory: readonly Uint8Array[];
  readonly seeks: bigint;
}

/**
 * Batches that the cursor admits. Ends only by the signal, or with NOT_FOUND, STREAM_REPLACED or STREAM_LAPSED; waits
 * while NATS is away.
 */
export async function* deliver(
  parts: StreamParts,
  request: StreamRequest,
  stream: StreamRef,
  signal: AbortSignal,
): AsyncGenerator<Parcel, void> {
  const persist = persistently(parts.log, signal);
  const changed = parts.cursors.changed(request.consumer);
  const wake = (): void => changed.wake();
  const ahead = openAhead(parts, request.taskId, signal, persist, wake);
  const work = { parts, request, stream, signal, persist };
  const again = new Again((batchId, room) => sentBefore(work, batchId, room), signal, wake);
  /** What comes next, as far as it is there; what comes behind it is being fetched. */
  const ready = (cursor: Cursor): Resolved[] => {
    const ids = againIds(cursor, Date.now());
    const before = again.ready(ids.map(Number));
    return ids.length > 0 ? before : ahead.ready(Number(cursor.sent));
  };
  for (;;) {
    const { count } = changed;
    const cursor = presentCursor(parts, request.consumer);
    memberOf(cursor, stream);
    const candidates = packed(request, ready(cursor));
    const { batches, isWaiting } = await admitted(work, cursor, candidates);
    if (batches.length > 0) {
      const sent = new Set(batches.map((batch) => Number(batch.batchId)));
      for (const from of [again, ahead]) from.take(sent);
      // What comes next is fetched while this is being sent.
      ready(presentCursor(parts, request.consumer));
      const memory = candidates.flatMap((one) => (sent.has(one.batchId) ? one.memory : []));
      yield { batches, memory, seeks: cursor.seeks };
    } else if (isWaiting) {
      const now = Date.now();
      const dueMs = (nextDueMs(cursor, now) ?? Number.POSITIVE_INFINITY) - now;
      await changed.wait(count, Math.min(STREAM_POLL_MS, dueMs), signal);
      signal.throwIfAborted();
    }
  }
}

interface Work {
  readonly parts: StreamParts;
  readonly request: StreamRequest;
  readonly stream: StreamRef;
  readonly signal: AbortSignal;
  readonly persist: Persist;
}

function presentCursor({ cursors }: StreamParts, consumer: string): Cursor {
  const cursor = cursors.known(consumer);
  if (cursor === undefined) throw consumerDeleted(consumer);
  return cursor;
}

export const consumerDeleted = (consumer: string): PolarError =>
  new PolarError('NOT_FOUND', `consumer ${consumer} was deleted`);

/** A batch that is to be sent again; undefined where it was removed from the stream, and is forgotten. */
async function sentBefore(work: Work, batchId: number, room: Room): Promise<Resolved | undefined> {
  const { parts, signal, persist } = work;
  const stored = await persist(() => parts.trajectories.at(batchId, signal));
  if (stored !== undefined) return await persist(() => parts.batches.resolve(stored, signal, room));
  await persist(() => forget(work, BigInt(batchId)));
  return undefined;
}

/** An operator removed it from the stream: it can neither be sent nor acknowledged. */
async function forget({ parts, request, signal }: Work, batchId: bigint): Promise<void> {
  const { consumer } = request;
  const change = (cursor: Cursor | undefined): Cursor => {
    if (cursor === undefined) throw consumerDeleted(consumer);
    return acked(cursor, [batchId]);
  };
  await parts.cursors.update(consumer, change, signal);
  batchRemoved(parts.log, consumer, Number(batchId));
}

/** The first one, and those behind it as far as the request lets them into one message. */
function packed({ messageTokens }: StreamRequest, ready: readonly Resolved[]): readonly Resolved[] {
  if (messageTokens === 0) return ready.slice(0, 1);
  let tokens = 0;
  const end = ready.findIndex((one, i) => {
    tokens += one.tokens;
    return i === MESSAGE_BATCHES_MAX || (i > 0 && tokens > messageTokens);
  });
  return end < 0 ? ready : ready.slice(0, end);
}

/** Judges the candidates, and writes which of them are sent before they are. Waiting: there is none, or no room. */
async function admitted(
  { parts, request, stream, signal, persist }: Work,
  cursor: Cursor,
  candidates: readonly Resolved[],
): Promise<{ readonly batches: TrajectoryBatch[]; readonly isWaiting: boolean }> {
  if (candidates.length === 0) return { batches: [], isWaiting: true };
  const { consumer, credit, filter } = request;
  const policyVersion = parts.policy.current;
  const offers = candidates.map(({ batch }) => offerOf(batch, filter, policyVersion));
  const admission = (known: Cursor): Admission =>
    admit(known, stream, cursor.seeks, offers, credit, Date.now());
  // A stream without credit asks nobody: acknowledgements show here at once, or when its place is looked at.
  const asKnown = admission(cursor);
  if (asKnown.full && asKnown.admitted.size === 0) return { batches: [], isWaiting: true };
  const tries: Admission[] = [];
  const change = (known: Cursor | undefined): Cursor => {
    if (known === undefined) throw consumerDeleted(consumer);
    const made = admission(known);
    tries.push(made);
    return made.cursor;
  };
  await persist(() => parts.cursors.update(consumer, change, signal));
  // The last one is what was written.
  const { admitted: sent = new Map(), full = false } = tries.at(-1) ?? {};
  const batches = offers.flatMap((offer) => batchesOf(parts, consumer, offer, sent, policyVersion));
  return { batches, isWaiting: full };
}

function batchesOf(
  { log }: StreamParts,
  consumer: string,
  { batch, droppedReason }: Offer,
  sent: Admission['admitted'],
  policyVersion: bigint,
): TrajectoryBatch[] {
  const entry = sent.get(batch.batchId);
  if (entry === undefined) return [];
  if (droppedReason !== '') batchDropped(log, consumer, Number(batch.batchId), droppedReason);
  const { deliveries: deliveryCount, nacks: nackCount, nackReason } = entry;
  const redelivered = deliveryCount > 1;
  const fields = { policyVersion, deliveryCount, redelivered, droppedReason, nackCount, nackReason };
  return [create(TrajectoryBatchSchema, { ...batch, ...fields })];
}

type Persist = <T>(attempt: () => Promise<T>) => Promise<T>;

/** Tries until it works: a trainer's stream outlives an absence of NATS of any length. */
function persistently(log: Logger, signal: AbortSignal): Persist {
  return async (attempt) => {
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof PolarError && error.retryable && error.reason !== 'STREAM_LAPSED'))
          throw error;
        streamInterrupted(log, error);
      }
      await sleep(STREAM_POLL_MS, signal);
    }
  };
}
