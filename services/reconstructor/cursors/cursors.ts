// Cursors of consumers in bucket polar_cursors: the truth about what was sent and acknowledged. Any process may write
// them: each write names the revision that it was made from. What a process wants changed in one cursor while a write of
// it is on its way goes into the next one, all together.
import { fromBinary } from '@bufbuild/protobuf';
import { type Cursor, CursorSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { abortable } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { STREAM_READ_MS } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { cameSecond, HEADER_BEHIND, withRetry } from '../../common/nats/publish.ts';
import { BUCKETS, subjectOfKey } from '../../common/nats/streams.ts';
import { cursorBytes } from '../domain/cursor-bytes.ts';
import { Wakeup } from '../streams/wakeup.ts';

const STREAM = `KV_${BUCKETS.cursors.name}`;
/** Times that a cursor is read and written anew because another process wrote it first; then NATS_UNAVAILABLE. */
const CURSOR_TRIES_MAX = 100;

const subjectOf = (name: string): string => subjectOfKey('cursors', name);

interface Entry {
  readonly cursor: Cursor | undefined;
  readonly revision: number;
}

/** What is to be made of a cursor. May be called several times; throws to change nothing. */
type Change = (cursor: Cursor | undefined) => Cursor;

interface Wanted {
  readonly change: Change;
  readonly signal: AbortSignal;
  readonly resolve: (cursor: Cursor) => void;
  readonly reject: (error: unknown) => void;
}

export class Cursors implements Disposable {
  readonly #changed = new Map<string, Wakeup>();
  readonly #bus: Bus;
  readonly #known = new Map<string, Entry>();
  readonly #wanted = new Map<string, Wanted[]>();
  readonly #closed = new AbortController();

  private constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** Makes the bucket where it is not there. */
  static async open(bus: Bus): Promise<Cursors> {
    await bus.kv('cursors');
    return new Cursors(bus);
  }

  [Symbol.dispose](): void {
    this.#closed.abort(new PolarError('SHUTTING_DOWN', 'the reconstructor stops'));
  }

  async get(name: string, signal: AbortSignal): Promise<Cursor | undefined> {
    return (await this.#read(name, signal)).cursor;
  }

  /** As this process last read or wrote it. */
  known(name: string): Cursor | undefined {
    return this.#known.get(name)?.cursor;
  }

  /** Wakes when the cursor has changed, as far as this process knows. */
  changed(name: string): Wakeup {
    let wakeup = this.#changed.get(name);
    if (wakeup === undefined) {
      wakeup = new Wakeup();
      this.#changed.set(name, wakeup);
    }
    return wakeup;
  }

  /** Names of all consumers, in order. */
  async names(signal: AbortSignal): Promise<string[]> {
    const info = await withRetry('list cursors', signal, () =>
      this.#bus.jsm.streams.info(STREAM, { subjects_filter: subjectOf('*') }),
    );
    return Object.keys(info.state.subjects ?? {})
      .map((subject) => subject.slice(subjectOf('').length))
      .sort();
  }

  /** Write what `change` makes of the cursor; durable when it returns. Nothing is written when it gives back what it got. */
  async update(name: string, change: Change, signal: AbortSignal): Promise<Cursor> {
    const { promise, resolve, reject } = Promise.withResolvers<Cursor>();
    const wanted = { change, signal, resolve, reject };
    const queue = this.#wanted.get(name);
    if (queue === undefined) {
      this.#wanted.set(name, [wanted]);
      void this.#serve(name);
    } else {
      queue.push(wanted);
    }
    return await abortable(promise, signal);
  }

  /**
   * Forget a consumer; a cursor that is written later is a new one. A nats-server that is killed may have the message before
   * the one that was removed again, however long ago that was: that must be a mark, too.
   */
  async delete(name: string, signal: AbortSignal): Promise<void> {
    const subject = subjectOf(name);
    const mark = () => this.#bus.acks.store(subject, new Uint8Array(), {});
    try {
      for (let marks = 0; marks < 2; marks++) await withRetry('delete cursor', signal, mark);
    } catch (error) {
      // It is removed all the same: that lets retention make room.
      if (asPolarError(error).reason !== 'NATS_STORE_FULL') throw error;
    }
    await withRetry('delete cursor', signal, () => this.#bus.jsm.streams.purge(STREAM, { filter: subject }));
    this.#learn(name, { cursor: undefined, revision: 0 });
    this.#changed.delete(name);
  }

  /** Serves what is wanted of one cursor until nothing is. */
  async #serve(name: string): Promise<void> {
    for (let queue = this.#wanted.get(name); queue !== undefined && queue.length > 0; ) {
      const all = queue.splice(0);
      const open = all.filter(({ signal }) => !signal.aborted);
      await this.#apply(name, open).catch((error: unknown) => {
        for (const { reject } of open) reject(error);
      });
    }
    this.#wanted.delete(name);
  }

  async #apply(name: string, all: readonly Wanted[]): Promise<void> {
    if (all.length === 0) return;
    let entry = this.#known.get(name);
    for (let i = 0; i < CURSOR_TRIES_MAX; i++) {
      const isFresh = entry === undefined;
      entry ??= await this.#read(name, this.#closed.signal);
      const { cursor, done, refused, idle } = fold(entry.cursor, all);
      // What this process remembers may be old: only what it has just read can refuse, or need no change.
      if (!isFresh && (idle || refused.size > 0)) {
        entry = undefined;
        continue;
      }
      const isSame = cursor === undefined || cursor === entry.cursor;
      const revision = isSame ? entry.revision : await this.#write(name, cursor, entry);
      if (revision === undefined) {
        entry = undefined;
        continue;
      }
      if (revision !== entry.revision) this.#learn(name, { cursor, revision });
      for (const [{ resolve }, made] of done) resolve(made);
      for (const [{ reject }, error] of refused) reject(error);
      return;
    }
    throw new PolarError('NATS_UNAVAILABLE', `the cursor of ${name} was changed under every write`);
  }

  /** Read from the stream's leader: a replica may be behind what this process has just written. */
  async #read(name: string, signal: AbortSignal): Promise<Entry> {
    const before = this.#known.get(name);
    const entry = await withRetry('read cursor', signal, async () => {
      const query = { last_by_subj: subjectOf(name) };
      const read = this.#bus.jsm.streams.getMessage(STREAM, query).catch((error: Error) => {
        if (!/no message found/.test(error.message)) throw error;
        return undefined;
      });
      const message = await abortable(read, AbortSignal.timeout(STREAM_READ_MS));
      if (message === undefined) return { cursor: undefined, revision: 0 };
      // A deleted key is a message without a body, which a cursor that was ever opened never is.
      const gone = message.data.byteLength === 0;
      return { cursor: gone ? undefined : fromBinary(CursorSchema, message.data), revision: message.seq };
    });
    const known = this.#known.get(name);
    // What this process wrote, or read, in the meantime may be newer than this answer.
    if (known !== undefined && known !== before && known.revision >= entry.revision) return known;
    if (known?.revision !== entry.revision) this.#learn(name, entry);
    return entry;
  }

  #learn(name: string, entry: Entry): void {
    // Names of no consumer are not remembered: callers make them up.
    if (entry.cursor === undefined) this.#known.delete(name);
    else this.#known.set(name, entry);
    this.#changed.get(name)?.wake();
  }

  /** Its revision; undefined when another write came first, which may be this one, sent before and not answered. */
  async #write(name: string, cursor: Cursor, before: Entry): Promise<number | undefined> {
    const bytes = cursorBytes(cursor);
    return await withRetry('write cursor', this.#closed.signal, async () => {
      try {
        const fields = { [HEADER_BEHIND]: String(before.revision) };
        return (await this.#bus.acks.store(subjectOf(name), bytes, fields)).seq;
      } catch (error) {
        if (cameSecond(error)) return undefined;
        throw error;
      }
    });
  }
}

/** All changes, one on the other; one that throws changes nothing. */
function fold(before: Cursor | undefined, all: readonly Wanted[]) {
  let cursor = before;
  let idle = false;
  const done = new Map<Wanted, Cursor>();
  const refused = new Map<Wanted, unknown>();
  for (const wanted of all) {
    try {
      const next = wanted.change(cursor);
      idle ||= next === cursor;
      cursor = next;
      done.set(wanted, next);
    } catch (error) {
      refused.set(wanted, error);
    }
  }
  return { cursor, done, refused, idle };
}
