// Groups that were announced, shared by all reconstructors: those of small trajectories are packed (ADR 42), unless everyone who
// reads them has been sent them by then.
import type { Cursor, GroupReady } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { sleep } from '../../common/clock.ts';
import { asPolarError } from '../../common/errors.ts';
import { giveBack } from '../../common/memory.ts';
import { consume, type Delivery } from '../../common/nats/consume.ts';
import { CONSUMERS, STREAMS } from '../../common/nats/streams.ts';
import type { ReconstructorContext } from '../context.ts';
import { packableBytes } from '../domain/packable.ts';
import { packFailed } from '../events.ts';

const PACKS_AT_ONCE_MAX = 4;
/** A trainer that waits for a group is sent it within this: then it needs no pack. */
const PACK_AFTER_MS = 2_000;
/** Cursors that were read so long ago are looked at again. */
const CURSORS_OLD_MS = 1_000;

type PackParts = Pick<
  ReconstructorContext,
  'bus' | 'blobs' | 'log' | 'cursors' | 'trajectories' | 'batches' | 'packs'
>;

/** Pack until the signal aborts. */
export async function consumeAnnouncements(parts: PackParts, signal: AbortSignal): Promise<void> {
  const reading = cursorsOf(parts);
  await consume({
    bus: parts.bus,
    blobs: parts.blobs,
    log: parts.log,
    stream: STREAMS.trajectories.name,
    consumer: CONSUMERS.packs,
    concurrency: PACKS_AT_ONCE_MAX,
    keepsClaims: true,
    signal,
    async handle(delivery, stopped) {
      try {
        await handle(parts, reading, delivery, stopped);
      } catch (error) {
        // Nothing is lost by it: the group is read trajectory by trajectory.
        if (!stopped.aborted) packFailed(parts.log, delivery.subject, asPolarError(error));
      }
    },
  });
}

async function handle(
  parts: PackParts,
  reading: (signal: AbortSignal) => Promise<readonly Cursor[]>,
  { bytes, subject, seq }: Delivery,
  signal: AbortSignal,
): Promise<void> {
  if (packableBytes(bytes) === undefined) return;
  const stored = await parts.trajectories.at(seq, signal);
  if (stored === undefined) return;
  const group = await stored.read(signal);
  await sleep(waitMs(group), signal);
  signal.throwIfAborted();
  if (isSentToAll(await reading(signal), seq, stored.taskId)) return;
  const { batch, isWhole, memory } = await parts.batches.unpacked(stored, signal);
  if (isWhole) await parts.packs.put({ subject, group: bytes }, batch, signal);
  giveBack(memory);
}

/** By this clock, which may be another one than the scheduler's. */
const waitMs = ({ readyMs }: GroupReady): number =>
  Math.min(Math.max(Number(readyMs) + PACK_AFTER_MS - Date.now(), 0), PACK_AFTER_MS);

function isSentToAll(cursors: readonly Cursor[], batchId: number, taskId: string): boolean {
  const readers = cursors.filter((cursor) => cursor.taskId === '' || cursor.taskId === taskId);
  return readers.length > 0 && readers.every(({ sent }) => sent >= batchId);
}

/** All of them, at most CURSORS_OLD_MS old. */
function cursorsOf({ cursors }: PackParts): (signal: AbortSignal) => Promise<readonly Cursor[]> {
  let read: Promise<readonly Cursor[]> | undefined;
  let readAt = Number.NEGATIVE_INFINITY;
  const all = async (signal: AbortSignal): Promise<readonly Cursor[]> => {
    const names = await cursors.names(signal);
    const found = await Promise.all(names.map((name) => cursors.get(name, signal)));
    return found.filter((cursor) => cursor !== undefined);
  };
  return async (signal) => {
    if (read === undefined || performance.now() - readAt > CURSORS_OLD_MS) {
      readAt = performance.now();
      read = all(signal);
    }
    try {
      return await read;
    } catch (error) {
      read = undefined;
      throw error;
    }
  };
}
