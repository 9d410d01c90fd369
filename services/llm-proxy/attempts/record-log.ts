// The records of attempts in POLAR_COMPLETIONS: one subject each, each record behind the one before it.
import { fromBinary } from '@bufbuild/protobuf';
import { type Completion, CompletionSchema } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { checkOut, HEADER_MSG_ID, publish, withRetry } from '../../common/nats/publish.ts';
import { pullRecords } from '../../common/nats/records.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { AttemptState } from '../domain/attempt-state.ts';
import { recordBytes } from '../domain/record-bytes.ts';

export interface AttemptKey {
  readonly sessionId: string;
  readonly attempt: number;
}

const STREAM = STREAMS.completions.name;

export class RecordLog {
  readonly #bus: Bus;
  readonly #blobs: BlobStore;
  readonly #signal: AbortSignal;
  readonly #isNew: (key: AttemptKey) => boolean;

  /** The signal ends all waiting; attempts that are new have no records to be looked for before the first one is written. */
  constructor(bus: Bus, blobs: BlobStore, signal: AbortSignal, isNew = (_: AttemptKey): boolean => false) {
    this.#bus = bus;
    this.#blobs = blobs;
    this.#signal = signal;
    this.#isNew = isNew;
  }

  /** Store behind `lastSeq`, durable when it returns. Returns its sequence; undefined when another came first. */
  async append(key: AttemptKey, record: Completion, lastSeq: number): Promise<number | undefined> {
    const subject = subjects.completion(key.sessionId, key.attempt);
    const msgId = `${key.sessionId}:${key.attempt}:${record.callId}`;
    const bytes = recordBytes(record);
    try {
      return await publish(this.#bus, this.#blobs, subject, bytes, {
        msgId,
        behind: lastSeq,
        signal: this.#signal,
      });
    } catch (error) {
      if (!(error instanceof PolarError) || error.reason !== 'STATE_FENCED') throw error;
    }
    // A retry of a publish whose answer was lost is refused by itself (nats-server 2.15).
    const last = await this.#last(subject);
    return last?.msgId === msgId ? last.seq : undefined;
  }

  /** The attempt at its first call here. Where a record is there in spite of all, the first append is refused. */
  async open(key: AttemptKey): Promise<AttemptState> {
    return this.#isNew(key) ? new AttemptState() : await this.load(key);
  }

  /** What the stored records of the attempt say. */
  async load(key: AttemptKey): Promise<AttemptState> {
    const state = new AttemptState();
    await this.each(key, (record, seq) => state.apply(record, seq));
    return state;
  }

  #last(subject: string): Promise<{ seq: number; msgId: string } | undefined> {
    return withRetry(subject, this.#signal, async () => {
      try {
        // From the leader: a direct get may come from a replica that is behind.
        const message = await this.#bus.jsm.streams.getMessage(STREAM, { last_by_subj: subject });
        return { seq: message.seq, msgId: message.header.get(HEADER_MSG_ID) };
      } catch (error) {
        if (/no message|message not found|404/i.test((error as Error).message)) return undefined;
        throw error;
      }
    });
  }

  /** Take in each stored record of the attempt, in their order. */
  async each(key: AttemptKey, take: (record: Completion, seq: number) => void): Promise<void> {
    const subject = subjects.completion(key.sessionId, key.attempt);
    const last = await this.#last(subject);
    if (last === undefined) return;
    let done = 0;
    // A second try goes on where the first one broke off.
    await withRetry(subject, this.#signal, async () => {
      for await (const message of pullRecords(this.#bus, subject, done + 1, this.#signal)) {
        const bytes = await checkOut(this.#blobs, message, this.#signal);
        take(fromBinary(CompletionSchema, bytes), message.seq);
        done = message.seq;
        if (done >= last.seq) return;
      }
      throw new Error('who answered is behind the last record');
    });
  }
}
