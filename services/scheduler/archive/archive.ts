// Ended tasks outside of memory: a message for the task, one for each page of its sessions. What is written again replaces
// what was there, so that a task can be archived anew after a kill, and after sessions of it went again.
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  ArchivedSessionsSchema,
  type ArchivedTask,
  ArchivedTaskSchema,
  type SessionRecord,
} from '../../../gen/ts/polar/event/v1/state_pb.js';
import { sha256, TASK_ID_PATTERN } from '../../common/ids.ts';
import { ARCHIVE_READS_AT_ONCE, ARCHIVE_PAGE_SESSIONS as SIZE } from '../../common/limits.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { checkOut, publish, withRetry } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { fromStored } from '../../common/stored.ts';
import { partsOfSessionId } from '../domain/session.ts';
import { isMissing } from '../journal/chain.ts';

/** A page of archived tasks, the one that was archived last in front. */
export interface ArchivedPage {
  readonly tasks: ArchivedTask[];
  /** Where the next page begins; undefined on the last one. */
  readonly next: number | undefined;
}

/** Tasks that are looked at for one page. */
const LOOKS_MAX = 1_024;

/** What the clocks of a scheduler, which says when a task ended, and of NATS may differ by. */
const CLOCKS_MS_MAX = 60_000;

interface Stored {
  readonly bytes: Uint8Array;
  /** Unix time in milliseconds. */
  readonly storedMs: number;
}

export class Archive {
  readonly #bus: Bus;
  readonly #blobs: BlobStore;
  readonly #signal: AbortSignal;

  constructor(bus: Bus, blobs: BlobStore, signal: AbortSignal) {
    this.#bus = bus;
    this.#blobs = blobs;
    this.#signal = signal;
  }

  /** Durable when it returns. The task itself comes last: what is found is whole. */
  async put(archived: ArchivedTask, sessions: readonly SessionRecord[]): Promise<void> {
    const { taskId, requestId, sessionPrefix } = recordOf(archived);
    const writes: Promise<void>[] = [];
    for (let from = 0; from < sessions.length; from += SIZE) {
      const page = create(ArchivedSessionsSchema, { sessions: sessions.slice(from, from + SIZE) });
      const subject = subjects.archivedSessions(sessionPrefix, from / SIZE);
      writes.push(this.#write(subject, toBinary(ArchivedSessionsSchema, page)));
    }
    if (requestId !== taskId) {
      writes.push(this.#write(subjects.archivedRequest(sha256(requestId)), Buffer.from(taskId)));
    }
    await Promise.all(writes);
    await this.#write(subjects.archivedTask(taskId), toBinary(ArchivedTaskSchema, archived));
  }

  async task(taskId: string): Promise<ArchivedTask | undefined> {
    // What is no id is no part of a subject either: NATS would answer nothing, or another message.
    if (!TASK_ID_PATTERN.test(taskId)) return undefined;
    const found = await this.#read(STREAMS.archivedTasks.name, {
      last_by_subj: subjects.archivedTask(taskId),
    });
    return found && fromStored(ArchivedTaskSchema, found.bytes);
  }

  async byRequest(requestId: string): Promise<ArchivedTask | undefined> {
    const subject = subjects.archivedRequest(sha256(requestId));
    const known = await this.#read(STREAMS.archive.name, { last_by_subj: subject });
    const task = await this.task(known === undefined ? requestId : Buffer.from(known.bytes).toString());
    return task !== undefined && recordOf(task).requestId === requestId ? task : undefined;
  }

  /** Sessions by sample index, up to but not including `to`; without those whose page is not kept any more. */
  async sessions(task: ArchivedTask, from: number, to: number): Promise<SessionRecord[]> {
    const { sessionPrefix } = recordOf(task);
    const first = Math.floor(from / SIZE);
    const count = Math.max(0, Math.ceil(to / SIZE) - first);
    const reads = Array.from({ length: count }, (_, i) => this.#page(sessionPrefix, first + i));
    const sessions = (await Promise.all(reads)).flat();
    return sessions.filter(
      ({ session: { sampleIndex = -1 } = {} }) => sampleIndex >= from && sampleIndex < to,
    );
  }

  async session(sessionId: string): Promise<SessionRecord | undefined> {
    const parts = partsOfSessionId(sessionId);
    if (parts === undefined) return undefined;
    const { prefix, sampleIndex } = parts;
    const page = await this.#page(prefix, Math.floor(sampleIndex / SIZE));
    return page.find(({ session }) => session?.sampleIndex === sampleIndex);
  }

  /**
   * Up to `count` tasks that are wanted, of the next LOOKS_MAX from where the last page ended, at first from the newest;
   * none that ended before `sinceMs`.
   */
  async list(
    count: number,
    wanted: (task: ArchivedTask) => boolean,
    from?: number,
    sinceMs = 0,
  ): Promise<ArchivedPage> {
    const { state } = await withRetry('archive', this.#signal, () =>
      this.#bus.jsm.streams.info(STREAMS.archivedTasks.name),
    );
    const tasks: ArchivedTask[] = [];
    let next = Math.min(from ?? state.last_seq, state.last_seq);
    const last = next - LOOKS_MAX;
    while (next >= state.first_seq && state.messages > 0) {
      if (tasks.length === count || next <= last) return { tasks, next };
      const reads = Math.min(ARCHIVE_READS_AT_ONCE, count - tasks.length, next - state.first_seq + 1);
      const seqs = Array.from({ length: reads }, (_, i) => next - i);
      const found = await Promise.all(seqs.map((seq) => this.#read(STREAMS.archivedTasks.name, { seq })));
      for (const { bytes, storedMs } of found.filter((one) => one !== undefined)) {
        // A task ends before it is archived: so did all that were archived earlier.
        if (storedMs < sinceMs - CLOCKS_MS_MAX) return { tasks, next: undefined };
        const archived = fromStored(ArchivedTaskSchema, bytes);
        const { endTime } = archived.task ?? {};
        const ended = endTime === undefined || timestampMs(endTime) >= sinceMs;
        if (ended && wanted(archived)) tasks.push(archived);
      }
      next -= reads;
    }
    return { tasks, next: undefined };
  }

  async #page(prefix: string, page: number): Promise<SessionRecord[]> {
    const subject = subjects.archivedSessions(prefix, page);
    const found = await this.#read(STREAMS.archive.name, { last_by_subj: subject });
    return found === undefined ? [] : fromStored(ArchivedSessionsSchema, found.bytes).sessions;
  }

  async #write(subject: string, bytes: Uint8Array): Promise<void> {
    await publish(this.#bus, this.#blobs, subject, bytes, { signal: this.#signal });
  }

  async #read(
    stream: string,
    query: { seq: number } | { last_by_subj: string },
  ): Promise<Stored | undefined> {
    return await withRetry('read archive', this.#signal, async () => {
      try {
        const { data, header, time } = await this.#bus.direct.getMessage(stream, query);
        const bytes = await checkOut(this.#blobs, { data, headers: header }, this.#signal);
        return { bytes, storedMs: time.getTime() };
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    });
  }
}

/** The record of an archived task, which is always set. */
export function recordOf({ record }: ArchivedTask) {
  if (record === undefined) throw new Error('an archived task without its record');
  return record;
}
