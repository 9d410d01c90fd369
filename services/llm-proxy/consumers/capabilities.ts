// Watches bucket polar_capabilities, so that a call costs no look-up and a deleted capability opens nothing any more.
import { fromBinary } from '@bufbuild/protobuf';
import { KvWatchInclude } from 'nats';
import {
  type AttemptRef,
  type Capability,
  CapabilitySchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { abortable, sleep, withTimeout } from '../../common/clock.ts';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { sha256 } from '../../common/ids.ts';
import { CAPABILITY_CATCH_UP_MS, CAPABILITY_WAIT_MS, NATS_BOOT_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { BUCKETS } from '../../common/nats/streams.ts';
import { CapabilityTable } from '../domain/capability-table.ts';
import { watchInterrupted } from '../events.ts';

const STREAM = `KV_${BUCKETS.capabilities.name}`;
const PREFIX = `$KV.${BUCKETS.capabilities.name}.`;
/** Between two looks for a capability that is not known yet. */
const LOOK_PAUSE_MS = 50;
/** Before the watch is opened again. */
const REOPEN_PAUSE_MS = 200;

/** By the steady clock: a machine that slept for days, or whose clock is set by as much, ends no run that goes on. */
const endOf = ({ expireMs }: Capability): number => performance.now() + Number(expireMs) - Date.now();

export interface CapabilitiesOptions {
  readonly bus: Bus;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** An attempt's capability was deleted, replaced or has expired. */
  readonly onRevoked: (capability: Capability) => void;
  /** Wait for NATS, at first and from one look at what has come to the next; default NATS_BOOT_MS. */
  readonly silentMs?: number;
}

export class Capabilities {
  readonly #options: CapabilitiesOptions;
  #table = new CapabilityTable(endOf);
  /** Of the newest entry that was there when this process began to watch. */
  #firstRevision: number | undefined;
  #catchingUp: Promise<void> | undefined;
  #stopWatch: (() => void) | undefined;
  /** Entries that watches have brought. */
  #read = 0;

  private constructor(options: CapabilitiesOptions) {
    this.#options = options;
  }

  /** Returns when all that is in the bucket is known. */
  static async watch(options: CapabilitiesOptions): Promise<Capabilities> {
    const capabilities = new Capabilities(options);
    const ready = Promise.withResolvers<void>();
    void capabilities.#run(ready.resolve);
    await capabilities.#whileTheyCome(ready.promise);
    return capabilities;
  }

  /** There may be many: the end is waited for as long as any come. */
  async #whileTheyCome(ready: Promise<void>): Promise<void> {
    const { signal, silentMs = NATS_BOOT_MS } = this.#options;
    for (;;) {
      const before = this.#read;
      try {
        return await abortable(ready, withTimeout(silentMs, signal));
      } catch (error) {
        signal.throwIfAborted();
        if (this.#read > before) continue;
        throw new PolarError('NATS_UNAVAILABLE', 'the capabilities cannot be watched', { cause: error });
      }
    }
  }

  /** The attempt that a credential opens. Throws NATS_UNAVAILABLE where that cannot be known now. */
  async find(secret: string): Promise<Capability | undefined> {
    const digest = sha256(secret);
    const known = this.#table.find(digest, performance.now());
    if (known !== undefined) return known;
    const limit = withTimeout(CAPABILITY_WAIT_MS, this.#options.signal);
    let looked = false;
    while (!limit.aborted) {
      looked =
        (await abortable(this.#catchUp(), limit).then(
          () => true,
          () => false,
        )) || looked;
      const found = this.#table.find(digest, performance.now());
      if (found !== undefined) return found;
      await sleep(LOOK_PAUSE_MS, limit);
    }
    if (looked) return undefined;
    throw new PolarError('NATS_UNAVAILABLE', 'NATS does not answer, so the capability cannot be checked');
  }

  /** Whether what was found is still valid. */
  holds(capability: Capability): boolean {
    return this.#table.holds(capability, performance.now());
  }

  /** Those that are known now. */
  get all(): Iterable<Capability> {
    return this.#table.capabilities;
  }

  /** The attempt's credential was granted while this process watched: nobody else has served its calls. */
  isNew({ sessionId, attempt }: Pick<AttemptRef, 'sessionId' | 'attempt'>): boolean {
    const revision = this.#table.revisionOf(`${sessionId}.${attempt}`);
    return this.#firstRevision !== undefined && revision > this.#firstRevision;
  }

  /** The attempt's credential was granted before this process began to watch: another one may have served its calls. */
  isOlder({ sessionId, attempt }: Pick<AttemptRef, 'sessionId' | 'attempt'>): boolean {
    const revision = this.#table.revisionOf(`${sessionId}.${attempt}`);
    return revision > 0 && this.#firstRevision !== undefined && revision <= this.#firstRevision;
  }

  /** Watch, and again when the watch breaks off. */
  async #run(ready: () => void): Promise<void> {
    const { signal, log } = this.#options;
    const upkeep = setInterval(() => this.#upkeep(), CAPABILITY_CATCH_UP_MS);
    void this.#watchConnection();
    // Until it is open again the same is said once: for as long as NATS lacks its store, it would be five times a second.
    let told = '';
    const opened = (): void => {
      told = '';
      ready();
    };
    while (!signal.aborted) {
      try {
        await this.#watchOnce(opened);
      } catch (error) {
        const { message } = asPolarError(error);
        if (message !== told) watchInterrupted(log, error);
        told = message;
      }
      await sleep(REOPEN_PAUSE_MS, signal);
    }
    clearInterval(upkeep);
  }

  /** A server that comes back may have lost its last entries: begin anew. */
  async #watchConnection(): Promise<void> {
    for await (const { type } of this.#options.bus.nc.status()) {
      if (type !== 'reconnect') continue;
      this.#stopWatch?.();
      // What was asked of the old connection is answered by nobody, and not to be waited for.
      this.#catchingUp = undefined;
    }
  }

  async #watchOnce(ready: () => void): Promise<void> {
    const { bus, signal } = this.#options;
    const kv = await bus.kv('capabilities');
    // Each watch begins with all that is there: a table of its own, so that what went away meanwhile is noticed.
    const table = new CapabilityTable(endOf);
    const watch = await kv.watch({
      // The same as the last ones, as each key has one: which those are, of very many, the server could not say in time.
      include: KvWatchInclude.AllHistory,
      initializedFn: () => {
        this.#replace(table);
        ready();
      },
    });
    const stop = (): void => watch.stop();
    this.#stopWatch = stop;
    signal.addEventListener('abort', stop, { once: true });
    try {
      for await (const { key, revision, operation, value } of watch) {
        this.#read++;
        this.#apply(table, key, revision, operation === 'PUT' ? value : undefined);
      }
    } finally {
      signal.removeEventListener('abort', stop);
      watch.stop();
    }
  }

  #replace(table: CapabilityTable): void {
    const before = this.#table;
    this.#table = table;
    this.#firstRevision ??= table.revision;
    for (const capability of before.capabilities) {
      if (table.find(capability.digest, Number.NEGATIVE_INFINITY) === undefined)
        this.#options.onRevoked(capability);
    }
  }

  #apply(table: CapabilityTable, key: string, revision: number, value: Uint8Array | undefined): void {
    const capability = value === undefined ? undefined : fromBinary(CapabilitySchema, value);
    const revoked = table.apply(key, revision, capability);
    if (revoked !== undefined && table === this.#table) this.#options.onRevoked(revoked);
  }

  #upkeep(): void {
    for (const capability of this.#table.expire(performance.now())) this.#options.onRevoked(capability);
    void this.#catchUp().catch(() => {});
  }

  /** Read what the watch has not brought. A look that began before the call does not count. */
  async #catchUp(): Promise<void> {
    const earlier = this.#catchingUp;
    await earlier?.catch(() => {});
    if (this.#catchingUp === earlier) {
      this.#catchingUp = this.#readOn();
    }
    await this.#catchingUp;
  }

  async #readOn(): Promise<void> {
    const table = this.#table;
    for (;;) {
      const query = { seq: table.revision + 1, next_by_subj: `${PREFIX}>` };
      const message = await this.#options.bus.jsm.streams.getMessage(STREAM, query).catch((error: Error) => {
        if (/no message|message not found|404/i.test(error.message)) return undefined;
        throw error;
      });
      if (message === undefined) return;
      const deleted = message.header.get('KV-Operation') !== '';
      const value = deleted ? undefined : message.data;
      this.#apply(table, message.subject.slice(PREFIX.length), message.seq, value);
    }
  }
}
