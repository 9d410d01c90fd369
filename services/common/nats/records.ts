// Reads the completion records of an attempt. The stream gets no durable consumers: what is made here is deleted.
import { fromBinary } from '@bufbuild/protobuf';
import { type ConsumerConfig, DeliverPolicy, type JsMsg, nanos } from 'nats';
import { type Completion, CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import type { CallRange } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../errors.ts';
import { newId } from '../ids.ts';
import { RECORDS_DIRECT_MAX, RECORDS_FETCH_MAX, RECORDS_FETCH_MS } from '../limits.ts';
import type { BlobStore } from './blobs.ts';
import type { Bus } from './bus.ts';
import { checkOut, withRetry } from './publish.ts';
import { STREAMS } from './streams.ts';
import { subjects } from './subjects.ts';
import { temporaryConsumer } from './temporary-consumer.ts';

const STREAM = STREAMS.completions.name;

type Range = Pick<CallRange, 'calls' | 'firstSeq' | 'lastSeq'>;
type Message = Parameters<typeof checkOut>[1];
/** Throws where the bytes are no record. */
type Read<T> = (bytes: Uint8Array) => T;

export interface Records {
  /** Those of a range that ends with `lastSeq`, as `read` reads them. Not checked for completeness. */
  inRange<T>(
    session: string,
    attempt: number,
    range: Range,
    signal: AbortSignal,
    read: Read<T>,
  ): Promise<T[]>;
  /** All that are there now. */
  all(session: string, attempt: number, signal: AbortSignal): Promise<Completion[]>;
}

export function createRecords(bus: Bus, blobs: BlobStore): Records {
  const decode = async <T>(message: Message, read: Read<T>, signal: AbortSignal): Promise<T> =>
    decoded(await checkOut(blobs, message, signal), read);

  const direct = async <T>(subject: string, range: Range, read: Read<T>, signal: AbortSignal) => {
    const found: T[] = [];
    const last = Number(range.lastSeq);
    for (let seq = Number(range.firstSeq); seq <= last; ) {
      const query = { seq, next_by_subj: subject };
      const messages = await withRetry('read records', signal, async () => {
        const some = bus.reads.usable
          ? await bus.reads.list(STREAM, query, range.calls)
          : [await bus.direct.getMessage(STREAM, query).catch(orMissing)];
        if (some.length === 0) throw missing();
        return some;
      });
      for (const { data, header: headers, seq: at } of messages) {
        if (at <= last) found.push(await decode({ data, headers }, read, signal));
        seq = at + 1;
      }
    }
    return found;
  };

  /** Where it breaks off, it goes on behind what came. */
  const pulled = async <T>(
    subject: string,
    first: number,
    last: number,
    read: Read<T>,
    signal: AbortSignal,
  ) => {
    const found: T[] = [];
    let next = first;
    await withRetry('read records', signal, async () => {
      for await (const message of pullRecords(bus, subject, next, signal)) {
        if (message.seq > last) return;
        found.push(await decode(message, read, signal));
        next = message.seq + 1;
      }
    });
    return found;
  };

  return {
    async inRange(session, attempt, range, signal, read) {
      if (range.calls === 0) return [];
      const subject = subjects.completion(session, attempt);
      if (range.calls <= RECORDS_DIRECT_MAX) return await direct(subject, range, read, signal);
      return await pulled(subject, Number(range.firstSeq), Number(range.lastSeq), read, signal);
    },
    all: (session, attempt, signal) =>
      pulled(subjects.completion(session, attempt), 1, Number.POSITIVE_INFINITY, readCompletion, signal),
  };
}

/** Those of a subject that are there from a sequence on, without a gap; it fails where one does not come. */
export async function* pullRecords(
  bus: Bus,
  subject: string,
  first: number,
  signal: AbortSignal,
): AsyncGenerator<JsMsg, void> {
  const name = newId('records');
  try {
    const { info, consumer } = await temporaryConsumer(bus, STREAM, configOf(name, subject, first), signal);
    for (let left = info.num_pending, seen = 0; left > 0; ) {
      signal.throwIfAborted();
      const batch = { max_messages: Math.min(left, RECORDS_FETCH_MAX), expires: RECORDS_FETCH_MS };
      const before = seen;
      for await (const message of await consumer.fetch(batch)) {
        if (message.info.deliverySequence !== ++seen) throw new Error('a record was sent and did not come');
        left--;
        yield message;
      }
      if (seen === before) throw new Error(`${left} records did not come in time`);
    }
  } finally {
    // One that stays because the server is away ends by its inactivity.
    await bus.jsm.consumers.delete(STREAM, name).catch(() => {});
  }
}

const configOf = (
  name: string,
  subject: string,
  first: number,
): Partial<ConsumerConfig> & { name: string } => ({
  name,
  filter_subject: subject,
  deliver_policy: DeliverPolicy.StartSequence,
  opt_start_seq: first,
  inactive_threshold: nanos(RECORDS_FETCH_MS * 4),
});

/** All that is in a record. */
export const readCompletion = (bytes: Uint8Array): Completion => fromBinary(CompletionSchema, bytes);

function decoded<T>(bytes: Uint8Array, read: Read<T>): T {
  try {
    return read(bytes);
  } catch (error) {
    throw new PolarError('RECORDS_INVALID', 'a completion record cannot be read', { cause: error });
  }
}

function orMissing(error: Error): never {
  if (!/no message|message not found|404/i.test(error.message)) throw error;
  throw missing();
}

const missing = (): PolarError =>
  new PolarError('RECORDS_MISSING', 'the completion records end before the last one of the range');
