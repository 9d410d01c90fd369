// The policy as it stands: read and watched in bucket polar_policy, changed by compare and set.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { KV } from 'nats';
import { type Policy, Policy_Phase, PolicySchema } from '../../../gen/ts/polar/event/v1/policy_pb.js';
import { abortable, sleep, withTimeout } from '../clock.ts';
import { PolarError } from '../errors.ts';
import { HeldTimes } from '../held-times.ts';
import { NATS_BOOT_MS, POLICY_TRIES_MAX } from '../limits.ts';
import type { Bus } from './bus.ts';
import { cameSecond, withRetry } from './publish.ts';

const KEY = 'state';
/** Before a watch that broke off is opened again. */
const REOPEN_PAUSE_MS = 200;

/** The document and its place in the order of its changes. */
export interface PolicyState {
  readonly policy: Policy;
  /** 0: none was ever written. */
  readonly revision: number;
}

const NOTHING: PolicyState = { policy: create(PolicySchema, { phase: Policy_Phase.SERVING }), revision: 0 };

export interface PolicyWatchOptions {
  readonly bus: Bus;
  /** Ends the watch. */
  readonly signal: AbortSignal;
  readonly onChange?: (state: PolicyState) => void;
}

export class PolicyWatch {
  /** When calls were held. */
  readonly held = new HeldTimes();
  readonly #options: PolicyWatchOptions;
  #state: PolicyState = NOTHING;
  readonly #listeners = new Set<() => void>();
  #stopWatch: (() => void) | undefined;

  private constructor(options: PolicyWatchOptions) {
    this.#options = options;
  }

  /** Returns when the document is known. Throws NATS_UNAVAILABLE. */
  static async open(options: PolicyWatchOptions): Promise<PolicyWatch> {
    const watch = new PolicyWatch(options);
    const ready = Promise.withResolvers<void>();
    void watch.#run(() => {
      // Where there is no document yet, none was held before.
      watch.held.hear(watch.policy, Date.now());
      ready.resolve();
    });
    await abortable(ready.promise, withTimeout(NATS_BOOT_MS, options.signal)).catch((error) => {
      if (options.signal.aborted) throw options.signal.reason;
      throw new PolarError('NATS_UNAVAILABLE', 'the policy cannot be watched', { cause: error });
    });
    return watch;
  }

  get policy(): Policy {
    return this.#state.policy;
  }

  /** Hear of every change until it is disposed of. */
  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** As last heard of. */
  get state(): PolicyState {
    return this.#state;
  }

  /**
   * Change the document, durable when it returns; `change` may be called again with a newer one, and returns undefined
   * for leaving it as it is. Throws what `change` throws, NATS_UNAVAILABLE.
   */
  async update(change: (policy: Policy) => Policy | undefined, signal: AbortSignal): Promise<PolicyState> {
    const kv = await this.#options.bus.kv('policy');
    for (let tries = 0; tries < POLICY_TRIES_MAX; tries++) {
      const before = await withRetry('read policy', signal, () => read(kv));
      const policy = change(before.policy);
      if (policy === undefined) return this.#take(before);
      const revision = await write(kv, policy, before.revision, signal);
      if (revision !== undefined) return this.#take({ policy, revision });
    }
    throw new PolarError('NATS_UNAVAILABLE', 'the policy is changed by others all the time; try again');
  }

  #take(state: PolicyState): PolicyState {
    if (state.revision > this.#state.revision) {
      this.#state = state;
      this.held.hear(state.policy, Date.now());
      this.#options.onChange?.(state);
      for (const listener of this.#listeners) listener();
    }
    return state;
  }

  async #run(ready: () => void): Promise<void> {
    const { signal } = this.#options;
    void this.#watchConnection();
    while (!signal.aborted) {
      await this.#watchOnce(ready).catch(() => {});
      await sleep(REOPEN_PAUSE_MS, signal);
    }
  }

  /** A server that comes back may have lost its last change: begin anew. */
  async #watchConnection(): Promise<void> {
    for await (const { type } of this.#options.bus.nc.status()) {
      if (type === 'reconnect') this.#stopWatch?.();
    }
  }

  async #watchOnce(ready: () => void): Promise<void> {
    const { bus, signal } = this.#options;
    const kv = await bus.kv('policy');
    const watch = await kv.watch({ key: KEY, initializedFn: ready });
    const stop = (): void => watch.stop();
    this.#stopWatch = stop;
    let first = true;
    signal.addEventListener('abort', stop, { once: true });
    try {
      for await (const { operation, value, revision } of watch) {
        // What a watch begins with holds, even where it is older than what was heard before.
        if (first && revision < this.#state.revision) this.#state = NOTHING;
        first = false;
        if (operation === 'PUT') this.#take({ policy: fromBinary(PolicySchema, value), revision });
      }
    } finally {
      signal.removeEventListener('abort', stop);
      watch.stop();
    }
  }
}

async function read(kv: KV): Promise<PolicyState> {
  const entry = await kv.get(KEY);
  if (entry === null || entry.operation !== 'PUT') return { ...NOTHING, revision: entry?.revision ?? 0 };
  return { policy: fromBinary(PolicySchema, entry.value), revision: entry.revision };
}

/** Its revision; undefined when another change came first. */
async function write(
  kv: KV,
  policy: Policy,
  behind: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const bytes = toBinary(PolicySchema, policy);
  return await withRetry('write policy', signal, async () => {
    try {
      return await kv.put(KEY, bytes, { previousSeq: behind });
    } catch (error) {
      if (!cameSecond(error)) throw error;
      // An earlier try may have been stored and its answer lost.
      const entry = await kv.get(KEY);
      return entry !== null && Buffer.compare(entry.value, bytes) === 0 ? entry.revision : undefined;
    }
  });
}
