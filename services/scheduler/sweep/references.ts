// Which blobs are still named: by the state, by what waits, and by what is kept. Looked for in the order in which names move
// (from a fact to the state, from there to a group or the archive), so that none is missed on its way.

import { asPolarError } from '../../common/errors.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { checkOut, claimOf } from '../../common/nats/publish.ts';
import { STREAMS } from '../../common/nats/streams.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { walk, walkQueue } from '../../common/nats/walk.ts';
import { digestsIn } from '../domain/blob-refs.ts';
import type { State } from '../domain/state.ts';
import { isMissing } from '../journal/chain.ts';
import type { Journal } from '../journal/journal.ts';
import { partsOf, readManifest } from '../journal/snapshots.ts';

/** Kept messages that name blobs. */
const NAMING = [STREAMS.archivedTasks.name, STREAMS.trajectories.name];
/** Kept messages that a blob stands for where they are large, and that name none. */
const CLAIMING = [STREAMS.archive.name, STREAMS.dead.name];

type Message = Parameters<typeof checkOut>[1];

export interface ReferencesOptions {
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly state: State;
  readonly journal: Journal;
}

export class References {
  readonly #options: ReferencesOptions;
  /** Of completion records, which are many: the blobs that stand for them, by sequence, as far as they were looked at. */
  readonly #records = new Map<string, number>();
  #recordsTo = 0;
  #connection = '';

  constructor(options: ReferencesOptions) {
    this.#options = options;
  }

  /** Takes the digests of blobs that are named out of a set; what is left was named nowhere. */
  async takeFrom(digests: Set<string>, signal: AbortSignal): Promise<void> {
    const { bus, journal } = this.#options;
    for await (const { data, header } of walkQueue(bus, STREAMS.facts.name, signal)) {
      await this.#keep(digests, { data, headers: header }, signal);
    }
    for await (const { header } of walkQueue(bus, STREAMS.work.name, signal)) {
      digests.delete(claimOf(header) ?? '');
    }
    const snapshot = await readManifest(bus, signal);
    for (const { sha256 } of snapshot === undefined ? [] : partsOf(snapshot.manifest)) digests.delete(sha256);
    await journal.settled();
    this.#keepOfState(digests);
    for (const stream of NAMING) {
      for await (const message of walk(bus, { stream }, signal)) await this.#keep(digests, message, signal);
    }
    for (const stream of CLAIMING) {
      for await (const { headers } of walk(bus, { stream, headersOnly: true }, signal)) {
        digests.delete(claimOf(headers) ?? '');
      }
    }
    await this.#keepOfRecords(digests, signal);
    // Tasks that have come back from the archive meanwhile.
    await journal.settled();
    this.#keepOfState(digests);
  }

  async #keep(digests: Set<string>, message: Message, signal: AbortSignal): Promise<void> {
    const claim = claimOf(message.headers) ?? '';
    digests.delete(claim);
    try {
      const bytes = await checkOut(this.#options.blobs, message, signal);
      for (const digest of digestsIn(bytes)) digests.delete(digest);
    } catch (error) {
      // What it names is known to nobody any more, unless it was a replica that is behind that said so.
      if (asPolarError(error).reason !== 'BLOB_MISSING' || (await this.#isStored(claim))) throw error;
    }
  }

  async #isStored(digest: string): Promise<boolean> {
    const query = { last_by_subj: subjects.blobChunk(digest, 0) };
    return await this.#options.bus.jsm.streams.getMessage(STREAMS.blobs.name, query).then(
      () => true,
      (error) => !isMissing(error),
    );
  }

  #keepOfState(digests: Set<string>): void {
    for (const { record, sessions } of this.#options.state.tasks.values()) {
      if (record.spec.case === 'filesRef' || record.spec.case === 'specRef') {
        digests.delete(record.spec.value.sha256);
      }
      for (const session of sessions) {
        digests.delete(session?.built?.trajectory?.sha256 ?? '');
        digests.delete(session?.graded?.changes?.sha256 ?? '');
      }
    }
  }

  async #keepOfRecords(digests: Set<string>, signal: AbortSignal): Promise<void> {
    const { bus } = this.#options;
    const stream = STREAMS.completions.name;
    this.#forgetWhenReconnected();
    for await (const message of walk(bus, { stream, from: this.#recordsTo + 1, headersOnly: true }, signal)) {
      const digest = claimOf(message.headers);
      if (digest !== undefined) this.#records.set(digest, message.seq);
      // Also where the walk fails later: up to here it had no gap.
      this.#recordsTo = message.seq;
    }
    const { first_seq: first } = (await bus.jsm.streams.info(stream)).state;
    for (const [digest, seq] of this.#records) {
      if (seq < first) this.#records.delete(digest);
      else digests.delete(digest);
    }
  }

  /** A server that comes back may have lost its last messages, and give their sequences to others. */
  #forgetWhenReconnected(): void {
    const { server_id: server, client_id: client } = this.#options.bus.nc.info ?? {};
    const connection = `${server} ${client}`;
    if (connection === this.#connection) return;
    this.#connection = connection;
    this.#records.clear();
    this.#recordsTo = 0;
  }
}
