// Reads the stream of finished groups. It has no JetStream consumers: what a trainer has acknowledged is in its
// cursor, because JetStream may forget acknowledgements when its server is killed.
import { AckPolicy, type ConsumerConfig, type ConsumerInfo, DeliverPolicy, nanos } from 'nats';
import { type GroupReady, GroupReadySchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { abortable } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { STREAM_POLL_MS, STREAM_READ_MS } from '../../common/limits.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { checkOut, claimOf, withRetry } from '../../common/nats/publish.ts';
import type { StoredMessage } from '../../common/nats/reads.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { fromStored } from '../../common/stored.ts';
import { namesIn } from '../domain/batch.ts';
import { Wakeup } from './wakeup.ts';

const STREAM = STREAMS.trajectories.name;
/** Asked for at once: an answer costs less than a question, and than the look behind it whether the place is kept. */
const GROUPS_AT_ONCE = 64;

type Query = Parameters<Bus['direct']['getMessage']>[1];

/** What tells a group from another one that got its id after the stream had lost its end. */
export interface Place {
  readonly batchId: number;
  /** Unix time at which it was stored, by the clock of NATS; 0: not known. */
  readonly storedMs: number;
}

/** A group in the stream. */
export interface StoredGroup extends Place {
  readonly subject: string;
  readonly taskId: string;
  /** Digest of the blob that it is in where it is too large for a message. */
  readonly claim: string | undefined;
  /** Its message as it is stored. Throws BLOB_MISSING. */
  readonly bytes: (signal: AbortSignal) => Promise<Uint8Array>;
  /** The same, decoded. Throws RECORDS_INVALID, too. */
  readonly read: (signal: AbortSignal) => Promise<GroupReady>;
}

export interface TrajectoryLog extends Disposable {
  /** Wakes when a group may have come; a group may also come without it. */
  readonly published: Wakeup;
  /** The first group behind `batchId`; all tasks where the task is empty. */
  after(batchId: number, taskId: string, signal: AbortSignal): Promise<StoredGroup | undefined>;
  /** The first ones, none where there is none yet: for who goes on to read what is behind them. */
  several(batchId: number, taskId: string, signal: AbortSignal): Promise<readonly StoredGroup[]>;
  /** Undefined when it was removed. */
  at(batchId: number, signal: AbortSignal): Promise<StoredGroup | undefined>;
  ofGroup(taskId: string, groupId: string, signal: AbortSignal): Promise<StoredGroup | undefined>;
  /** How many groups are behind `batchId`. */
  pending(batchId: number, taskId: string, signal: AbortSignal): Promise<number>;
  /** Sequence of the last message ever stored. */
  lastBatchId(signal: AbortSignal): Promise<number>;
  /** Sequences of the first message that is kept, or of the next one where none is, and of the last ever stored. */
  range(signal: AbortSignal): Promise<{ readonly first: number; readonly last: number }>;
  /** Unix time by the clock of NATS; of a server that does not tell it, when the last group was stored. */
  natsMs(signal: AbortSignal): Promise<number>;
  /** Sequence of the first message stored at a time or after it, or of the next one where there is none. */
  firstAt(time: Date, signal: AbortSignal): Promise<number>;
}

export function openTrajectoryLog(bus: Bus, blobs: BlobStore): TrajectoryLog {
  const published = new Wakeup();
  // What is published to the stream passes here, too. It is a hint only: waits have an end of their own.
  const hints = bus.nc.subscribe(subjects.trajectoriesOf(''), { callback: () => published.wake() });
  const get = (query: Query, signal: AbortSignal): Promise<StoredGroup | undefined> =>
    withRetry('read trajectories', signal, async () => {
      const message = bus.reads.usable ? await bus.reads.find(STREAM, query) : await slowly(query);
      return message && stored(blobs, message);
    });
  const slowly = (query: Query): Promise<StoredMessage | undefined> =>
    abortable(bus.direct.getMessage(STREAM, query).catch(orNone), AbortSignal.timeout(STREAM_READ_MS));
  const range = async (signal: AbortSignal): Promise<{ first: number; last: number }> => {
    const { state } = await withRetry('read trajectories', signal, () => bus.jsm.streams.info(STREAM));
    return { first: state.messages === 0 ? state.last_seq + 1 : state.first_seq, last: state.last_seq };
  };

  return {
    published,
    after: (batchId, taskId, signal) =>
      get({ seq: batchId + 1, next_by_subj: subjects.trajectoriesOf(taskId) }, signal),
    several: (batchId, taskId, signal) =>
      withRetry('read trajectories', signal, async () => {
        const query = { seq: batchId + 1, next_by_subj: subjects.trajectoriesOf(taskId) };
        const found = bus.reads.usable
          ? await bus.reads.list(STREAM, query, GROUPS_AT_ONCE)
          : [await slowly(query)];
        return found.filter((one) => one !== undefined).map((one) => stored(blobs, one));
      }),
    // From the stream's leader: a replica that is behind must not make it look removed.
    at: (batchId, signal) =>
      withRetry('read trajectories', signal, async () => {
        const message = await bus.jsm.streams.getMessage(STREAM, { seq: batchId }).catch(orNone);
        return message && stored(blobs, message);
      }),
    ofGroup: (taskId, groupId, signal) => get({ last_by_subj: subjects.trajectory(taskId, groupId) }, signal),
    pending: async (batchId, taskId, signal) => {
      const start = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: batchId + 1 };
      return (await peek(bus, taskId, start, signal)).num_pending;
    },
    lastBatchId: async (signal) => (await range(signal)).last,
    range,
    natsMs: async (signal) => {
      const info = await withRetry('read trajectories', signal, () => bus.jsm.streams.info(STREAM));
      const { state, ts = state.last_ts } = info;
      return Date.parse(ts);
    },
    firstAt: async (time, signal) => {
      const start = { deliver_policy: DeliverPolicy.StartTime, opt_start_time: time.toISOString() };
      return (await peek(bus, '', start, signal)).delivered.stream_seq + 1;
    },
    [Symbol.dispose]: () => hints.unsubscribe(),
  };
}

function stored(blobs: BlobStore, message: StoredMessage): StoredGroup {
  const { data, header, seq, subject, time } = message;
  const bytesOf = (signal: AbortSignal): Promise<Uint8Array> =>
    checkOut(blobs, { data, headers: header }, signal);
  return {
    batchId: seq,
    storedMs: time.getTime(),
    subject,
    taskId: namesIn(subject).taskId,
    claim: claimOf(header),
    bytes: bytesOf,
    read: async (signal) => {
      const bytes = await bytesOf(signal);
      try {
        return fromStored(GroupReadySchema, bytes);
      } catch (error) {
        throw new PolarError('RECORDS_INVALID', `group ${seq} of ${STREAM} cannot be read`, { cause: error });
      }
    },
  };
}

/** A consumer that is never read knows where it would begin, and how much comes; it is deleted at once. */
async function peek(
  bus: Bus,
  taskId: string,
  start: Partial<ConsumerConfig>,
  signal: AbortSignal,
): Promise<ConsumerInfo> {
  const name = newId('peek');
  const added = await withRetry('look at trajectories', signal, () =>
    bus.jsm.consumers.add(STREAM, {
      name,
      filter_subject: subjects.trajectoriesOf(taskId),
      ...start,
      ack_policy: AckPolicy.None,
      mem_storage: true,
      inactive_threshold: nanos(STREAM_POLL_MS * 10),
    }),
  );
  await bus.jsm.consumers.delete(STREAM, name).catch(() => {});
  return added;
}

function orNone(error: Error): undefined {
  if (!/no message|message not found|404/i.test(error.message)) throw error;
  return undefined;
}
