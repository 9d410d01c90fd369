// Reads the stream of finished groups. It has no JetStream consumers: what a trainer has acknowledged is in its
// cursor, because JetStream may forget acknowledgements when its server is killed.
import { fromBinary } from '@bufbuild/protobuf';
import { AckPolicy, DeliverPolicy, nanos } from 'nats';
import { type GroupReady, GroupReadySchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { STREAM_POLL_MS } from '../../common/limits.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { checkOut, withRetry } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { Wakeup } from './wakeup.ts';

const STREAM = STREAMS.trajectories.name;

type StoredMessage = Pick<
  Awaited<ReturnType<Bus['direct']['getMessage']>>,
  'data' | 'header' | 'seq' | 'subject'
>;
type Query = Parameters<Bus['direct']['getMessage']>[1];

/** A group in the stream. */
export interface StoredGroup {
  readonly batchId: number;
  readonly subject: string;
  /** Fetches and decodes it. Throws BLOB_MISSING or RECORDS_INVALID. */
  readonly read: (signal: AbortSignal) => Promise<GroupReady>;
}

export interface TrajectoryLog extends Disposable {
  /** Wakes when a group may have come; a group may also come without it. */
  readonly published: Wakeup;
  /** The first group behind `batchId`; all tasks where the task is empty. */
  after(batchId: number, taskId: string, signal: AbortSignal): Promise<StoredGroup | undefined>;
  /** Undefined when it was removed. */
  at(batchId: number, signal: AbortSignal): Promise<StoredGroup | undefined>;
  ofGroup(taskId: string, groupId: string, signal: AbortSignal): Promise<StoredGroup | undefined>;
  /** How many groups are behind `batchId`. */
  pending(batchId: number, taskId: string, signal: AbortSignal): Promise<number>;
  /** Sequence of the last message ever stored. */
  lastBatchId(signal: AbortSignal): Promise<number>;
}

export function openTrajectoryLog(bus: Bus, blobs: BlobStore): TrajectoryLog {
  const published = new Wakeup();
  // What is published to the stream passes here, too. It is a hint only: waits have an end of their own.
  const hints = bus.nc.subscribe(subjects.trajectoriesOf(''), { callback: () => published.wake() });
  const get = (query: Query, signal: AbortSignal): Promise<StoredGroup | undefined> =>
    withRetry('read trajectories', signal, async () => {
      const message = await bus.direct.getMessage(STREAM, query).catch(orNone);
      return message && stored(blobs, message);
    });

  return {
    published,
    after: (batchId, taskId, signal) =>
      get({ seq: batchId + 1, next_by_subj: subjects.trajectoriesOf(taskId) }, signal),
    // From the stream's leader: a replica that is behind must not make it look removed.
    at: (batchId, signal) =>
      withRetry('read trajectories', signal, async () => {
        const message = await bus.jsm.streams.getMessage(STREAM, { seq: batchId }).catch(orNone);
        return message && stored(blobs, message);
      }),
    ofGroup: (taskId, groupId, signal) => get({ last_by_subj: subjects.trajectory(taskId, groupId) }, signal),
    pending: (batchId, taskId, signal) => countAfter(bus, batchId, taskId, signal),
    lastBatchId: async (signal) => {
      const info = await withRetry('read trajectories', signal, () => bus.jsm.streams.info(STREAM));
      return info.state.last_seq;
    },
    [Symbol.dispose]: () => hints.unsubscribe(),
  };
}

function stored(blobs: BlobStore, message: StoredMessage): StoredGroup {
  const { data, header, seq, subject } = message;
  return {
    batchId: seq,
    subject,
    read: async (signal) => {
      const bytes = await checkOut(blobs, { data, headers: header }, signal);
      try {
        return fromBinary(GroupReadySchema, bytes);
      } catch (error) {
        throw new PolarError('RECORDS_INVALID', `group ${seq} of ${STREAM} cannot be read`, { cause: error });
      }
    },
  };
}

/** A consumer that is never read knows the number; it is deleted at once. */
async function countAfter(bus: Bus, batchId: number, taskId: string, signal: AbortSignal): Promise<number> {
  const name = newId('count');
  const added = await withRetry('count trajectories', signal, () =>
    bus.jsm.consumers.add(STREAM, {
      name,
      filter_subject: subjects.trajectoriesOf(taskId),
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: batchId + 1,
      ack_policy: AckPolicy.None,
      mem_storage: true,
      inactive_threshold: nanos(STREAM_POLL_MS * 10),
    }),
  );
  await bus.jsm.consumers.delete(STREAM, name).catch(() => {});
  return added.num_pending;
}

function orNone(error: Error): undefined {
  if (!/no message|message not found|404/i.test(error.message)) throw error;
  return undefined;
}
