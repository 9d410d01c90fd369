// Cursors of consumers in bucket polar_cursors: the truth about what was sent and acknowledged. Any process may write
// them: each write names the revision that it was made from.
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Cursor, CursorSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../../common/errors.ts';
import { CURSOR_TRIES_MAX, PUBLISH_ACK_MS } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { jetstreamCode, withRetry } from '../../common/nats/publish.ts';
import { BUCKETS } from '../../common/nats/streams.ts';
import { Wakeup } from './wakeup.ts';

const BUCKET = BUCKETS.cursors.name;
const STREAM = `KV_${BUCKET}`;
/** JetStream's code for a failed expectation. */
const WRONG_LAST_SEQUENCE = 10071;

const keyOf = (name: string): string => `$KV.${BUCKET}.${name}`;

interface Entry {
  readonly cursor: Cursor | undefined;
  readonly revision: number;
}

export class Cursors {
  /** Wakes when this process has written any cursor. */
  readonly changed = new Wakeup();
  readonly #bus: Bus;
  readonly #tails = new Map<string, Promise<void>>();

  private constructor(bus: Bus) {
    this.#bus = bus;
  }

  /** Makes the bucket where it is not there. */
  static async open(bus: Bus): Promise<Cursors> {
    await bus.kv('cursors');
    return new Cursors(bus);
  }

  async get(name: string, signal: AbortSignal): Promise<Cursor | undefined> {
    return (await this.#read(name, signal)).cursor;
  }

  /** Names of all consumers, in order. */
  async names(signal: AbortSignal): Promise<string[]> {
    const info = await withRetry('list cursors', signal, () =>
      this.#bus.jsm.streams.info(STREAM, { subjects_filter: keyOf('*') }),
    );
    return Object.keys(info.state.subjects ?? {})
      .map((key) => key.slice(keyOf('').length))
      .sort();
  }

  /**
   * Write what `change` makes of the cursor; durable when it returns. `change` may be called again, with what another
   * process wrote meanwhile; nothing is written when it gives back what it got.
   */
  async update(
    name: string,
    change: (cursor: Cursor | undefined) => Cursor,
    signal: AbortSignal,
  ): Promise<Cursor> {
    return await this.#alone(name, async () => {
      for (let i = 0; i < CURSOR_TRIES_MAX; i++) {
        const { cursor, revision } = await this.#read(name, signal);
        const next = change(cursor);
        if (next === cursor) return next;
        if (!(await this.#write(name, next, revision, signal))) continue;
        this.changed.wake();
        return next;
      }
      throw new PolarError('NATS_UNAVAILABLE', `the cursor of ${name} was changed under every write`);
    });
  }

  /** Read from the stream's leader: a replica may be behind what this process has just written. */
  async #read(name: string, signal: AbortSignal): Promise<Entry> {
    return await withRetry('read cursor', signal, async () => {
      const query = { last_by_subj: keyOf(name) };
      const message = await this.#bus.jsm.streams.getMessage(STREAM, query).catch((error: Error) => {
        if (!/no message found/.test(error.message)) throw error;
        return undefined;
      });
      if (message === undefined) return { cursor: undefined, revision: 0 };
      // A deleted key is a message without a body, which a cursor that was ever opened never is.
      const gone = message.data.byteLength === 0;
      return { cursor: gone ? undefined : fromBinary(CursorSchema, message.data), revision: message.seq };
    });
  }

  /** False when another write came first, which may be this one, sent before and not answered. */
  async #write(name: string, cursor: Cursor, revision: number, signal: AbortSignal): Promise<boolean> {
    const bytes = toBinary(CursorSchema, cursor);
    return await withRetry('write cursor', signal, async () => {
      try {
        await this.#bus.js.publish(keyOf(name), bytes, {
          timeout: PUBLISH_ACK_MS,
          expect: { lastSubjectSequence: revision },
        });
        return true;
      } catch (error) {
        if (jetstreamCode(error) === WRONG_LAST_SEQUENCE) return false;
        throw error;
      }
    });
  }

  /** One write of a name at a time, so that a process does not race itself. */
  async #alone<T>(name: string, task: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#tails.set(name, promise);
    try {
      await before;
      return await task();
    } finally {
      resolve();
      if (this.#tails.get(name) === promise) this.#tails.delete(name);
    }
  }
}
