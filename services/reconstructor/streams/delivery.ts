// One stream's batches in order, as its credit allows: what may be sent again first, then the log.
import { create } from '@bufbuild/protobuf';
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { TrajectoryBatchSchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { sleep } from '../../common/clock.ts';
import { STREAM_POLL_MS } from '../../common/limits.ts';
import { type Admission, admit, nextDueMs } from '../domain/admission.ts';
import { memberOf, type StreamRef } from '../domain/members.ts';
import { type Offer, type Offered, offerOf } from '../domain/offer.ts';
import { batchDropped } from '../events.ts';
import type { Resolved } from './batches.ts';
import { type Persist, persistently } from './persistently.ts';
import { present, type StreamParts, type StreamRequest } from './stream-parts.ts';
import type { Supply } from './supply.ts';

/** Batches in one message. */
const MESSAGE_BATCHES_MAX = 256;
/** Times that a message waits so long for more, while more is on its way. */
const GATHER_WAITS_MAX = 4;
const GATHER_WAIT_MS = 1;

/** What one message holds. */
export interface Parcel {
  readonly batches: readonly Offered[];
  /** What their traces lie in, and nothing else does. */
  readonly memory: readonly Uint8Array[];
  readonly seeks: bigint;
}

/**
 * Batches of the supply that the cursor admits. Ends only by the signal, or with NOT_FOUND, STREAM_REPLACED or
 * STREAM_LAPSED; waits while NATS is away.
 */
export async function* deliver(
  parts: StreamParts,
  request: StreamRequest,
  stream: StreamRef,
  supply: Supply,
  signal: AbortSignal,
): AsyncGenerator<Parcel, void> {
  const persist = persistently(parts.log, signal);
  const changed = parts.cursors.changed(request.consumer);
  const work = { parts, request, stream, signal, persist };
  const known = (): Cursor => present(parts.cursors.known(request.consumer), request.consumer);
  for (;;) {
    const { count } = changed;
    const cursor = known();
    memberOf(cursor, stream);
    const candidates = await gathered(work, supply, known);
    const { batches, isWaiting } = await admitted(work, cursor, candidates);
    if (batches.length > 0) {
      const ids = new Set(batches.map(({ batch }) => Number(batch.batchId)));
      const sent = candidates.filter(({ batchId }) => ids.has(batchId));
      supply.take(sent);
      // What comes next is fetched while this is being sent.
      supply.ready(known());
      yield { batches, memory: sent.flatMap(({ memory }) => memory), seeks: cursor.seeks };
    } else if (isWaiting) {
      const now = Date.now();
      const dueMs = (nextDueMs(cursor, now) ?? Number.POSITIVE_INFINITY) - now;
      await changed.wait(count, Math.min(STREAM_POLL_MS, dueMs), signal);
      signal.throwIfAborted();
    }
  }
}

/** What goes into the next message: one that is not full waits a moment for what is being fetched, as each costs much. */
async function gathered(
  { request, stream, signal }: Work,
  supply: Supply,
  known: () => Cursor,
): Promise<readonly Resolved[]> {
  for (let waits = 0; ; waits++) {
    const cursor = known();
    // A stream without credit judges nothing: it is woken by each acknowledgement.
    const room = roomIn(cursor, request, stream);
    const ready = room === 0 ? [] : supply.ready(cursor);
    const candidates = packed(request, ready.slice(0, room));
    const isFull = candidates.length < ready.length;
    const isOver = request.messageTokens === 0 || isFull || waits >= GATHER_WAITS_MAX;
    if (candidates.length === 0 || isOver || !supply.isComing()) return candidates;
    await sleep(GATHER_WAIT_MS, signal);
    signal.throwIfAborted();
  }
}

/** Batches that the stream may still send. */
function roomIn(cursor: Cursor, { credit }: StreamRequest, stream: StreamRef): number {
  const { number } = memberOf(cursor, stream);
  const mine = cursor.unacked.filter(({ member }) => member === number);
  return Math.max(0, credit.maxUnacked - mine.length);
}

interface Work {
  readonly parts: StreamParts;
  readonly request: StreamRequest;
  readonly stream: StreamRef;
  readonly signal: AbortSignal;
  readonly persist: Persist;
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
): Promise<{ readonly batches: Offered[]; readonly isWaiting: boolean }> {
  if (candidates.length === 0) return { batches: [], isWaiting: true };
  const { consumer, credit, filter } = request;
  const policyVersion = parts.policy.current;
  const offers = candidates.map((one) => ({
    ...offerOf(one, filter, policyVersion),
    storedMs: one.storedMs,
  }));
  // One that another stream has sent meanwhile may be free again: it is fetched anew.
  const left = () => offers.filter((_, i) => candidates[i]?.isTaken === undefined);
  const admission = (known: Cursor): Admission =>
    admit(known, stream, cursor.seeks, left(), credit, Date.now());
  // A stream without credit asks nobody: acknowledgements show here at once, or when its place is looked at.
  const asKnown = admission(cursor);
  if (asKnown.full && asKnown.admitted.size === 0) return { batches: [], isWaiting: true };
  const tries: Admission[] = [];
  const change = (known: Cursor | undefined): Cursor => {
    const made = admission(present(known, consumer));
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
  { batch, packed, droppedReason }: Offer,
  sent: Admission['admitted'],
  policyVersion: bigint,
): Offered[] {
  const entry = sent.get(batch.batchId);
  if (entry === undefined) return [];
  if (droppedReason !== '') batchDropped(log, consumer, Number(batch.batchId), droppedReason);
  const { deliveries: deliveryCount, nacks: nackCount, nackReason } = entry;
  const redelivered = deliveryCount > 1;
  const fields = { policyVersion, deliveryCount, redelivered, droppedReason, nackCount, nackReason };
  return [{ batch: create(TrajectoryBatchSchema, { ...batch, ...fields }), ...(packed && { packed }) }];
}
