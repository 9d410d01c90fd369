// All sandboxes of this node: made, leased, and removed by release, expiry, revocation or fence.
import type { AttemptRef } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { Deadline } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { RUNTIMES_MAX } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { Backends } from '../backends/backends.ts';
import type { AcquireOptions } from '../domain/lease.ts';
import { planOf, type SandboxPlan } from '../domain/plan.ts';
import * as events from '../events.ts';
import type { NodeGpus } from './gpus.ts';
import { Maker, type MakerOptions } from './maker.ts';
import type { Runtime } from './runtime.ts';
import { RuntimeGpus } from './runtime-gpus.ts';

/** An attempt by its session and number. */
export type AttemptKey = Pick<AttemptRef, 'sessionId' | 'attempt'>;

/** A lease ends so long after the last heartbeat whose answer confirmed it, where it is not longer by itself. */
const LEASE_CONFIRMED_MS = 300_000;

interface Preparing {
  readonly options: AcquireOptions;
  readonly stop: AbortController;
  readonly done: Promise<unknown>;
}

export interface TableOptions extends MakerOptions {
  readonly gpus: NodeGpus;
}

export class RuntimeTable {
  /** Called when a leased sandbox is nobody's any more, before it is deleted. */
  onRemoved: (runtime: Runtime) => void = () => {};
  readonly #backends: Backends;
  readonly #gpus: NodeGpus;
  readonly #maker: Maker;
  readonly #log: Logger;
  readonly #leased = new Map<string, Runtime>();
  readonly #preparing = new Set<Preparing>();
  readonly #removing = new Set<Promise<void>>();
  #closed = false;

  constructor(options: TableOptions) {
    this.#backends = options.backends;
    this.#gpus = options.gpus;
    this.#maker = new Maker(options, (runtime) => this.#discard(runtime, lost('failed')));
    this.#log = options.log;
  }

  /**
   * Make and prepare a sandbox; its lease begins when it is prepared. Throws RUNTIME_LIMIT, BACKEND_UNAVAILABLE,
   * IMAGE_NOT_FOUND, PREPARE_FAILED, PREPARE_TIMEOUT, SANDBOX_FAILED, RUNTIME_LOST when it is revoked meanwhile, SHUTTING_DOWN.
   */
  async acquire(options: AcquireOptions, signal: AbortSignal): Promise<Runtime> {
    this.#refuseClosed();
    if (this.size >= RUNTIMES_MAX) {
      throw new PolarError('RUNTIME_LIMIT', `this node has ${RUNTIMES_MAX} sandboxes already`);
    }
    const stop = new AbortController();
    const done = this.#make(options, stop, signal);
    const entry: Preparing = { options, stop, done };
    this.#preparing.add(entry);
    try {
      return await done;
    } finally {
      this.#preparing.delete(entry);
    }
  }

  /** Throws NOT_FOUND, SHUTTING_DOWN. */
  get(id: string): Runtime {
    const runtime = this.#leased.get(id);
    if (runtime === undefined) this.#refuseClosed();
    if (runtime === undefined) throw new PolarError('NOT_FOUND', `there is no runtime ${id} on this node`);
    return runtime;
  }

  /** Whether it is still leased. */
  has(runtime: Runtime): boolean {
    return this.#leased.get(runtime.id) === runtime;
  }

  /** Sandboxes, those in the making too. */
  get size(): number {
    return this.#leased.size + this.#preparing.size;
  }

  /** The sandbox that an attempt runs in, if it is prepared. */
  ofAttempt({ sessionId, attempt }: AttemptKey): Runtime | undefined {
    return this.list().find(
      ({ options: { ref, forEvaluation } }) =>
        !forEvaluation && ref?.sessionId === sessionId && ref.attempt === attempt,
    );
  }

  list(): Runtime[] {
    return [...this.#leased.values()];
  }

  /** One for each attempt that has, or is getting, a sandbox. What is for no session is its lease's matter alone. */
  owners(): AcquireOptions[] {
    const all = [...this.list(), ...this.#preparing]
      .map(({ options }) => options)
      .filter(({ owner }) => owner.sessionId !== '');
    return [...new Map(all.map((one) => [keyOf(one.owner), one])).values()];
  }

  /** Attempts that the scheduler knows: what was made for them by its work stays, however long they wait. */
  confirm(attempts: readonly AttemptKey[]): void {
    const known = keysOf(attempts);
    for (const runtime of this.list()) {
      const { ref, owner } = runtime.options;
      if (ref === undefined || !known.has(keyOf(owner)) || runtime.leaseLeftMs > LEASE_CONFIRMED_MS) continue;
      runtime.lease(LEASE_CONFIRMED_MS);
    }
  }

  async release(id: string): Promise<void> {
    const runtime = this.#leased.get(id);
    if (runtime === undefined) return;
    await this.#remove(runtime, 'released');
  }

  /** Remove every sandbox whose lease has ended. */
  removeExpired(): void {
    for (const runtime of this.list()) if (runtime.leaseLeftMs <= 0) void this.#remove(runtime, 'expired');
  }

  /** Remove every sandbox of these attempts, those in the making too. */
  revoke(attempts: readonly AttemptKey[]): void {
    const keys = keysOf(attempts);
    this.#removeWhere(({ owner }) => keys.has(keyOf(owner)), 'revoked');
  }

  /** Remove every sandbox of a session. */
  removeSessions(): void {
    this.#removeWhere(({ owner }) => owner.sessionId !== '', 'fenced');
  }

  /** Remove everything and wait for it. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#removeWhere(() => true, 'stopped');
    await Promise.allSettled([...this.#preparing].map(({ done }) => done));
    this.#removeWhere(() => true, 'stopped');
    await Promise.allSettled(this.#removing);
  }

  #refuseClosed(): void {
    if (this.#closed) throw new PolarError('SHUTTING_DOWN', 'the node is stopping');
  }

  #removeWhere(wanted: (options: AcquireOptions) => boolean, cause: events.RemovalCause): void {
    for (const { options, stop } of this.#preparing) if (wanted(options)) stop.abort(lost(cause));
    for (const runtime of this.list()) if (wanted(runtime.options)) void this.#remove(runtime, cause);
  }

  async #make(options: AcquireOptions, stop: AbortController, signal: AbortSignal): Promise<Runtime> {
    const { timeoutMs } = options;
    using deadline = new Deadline(timeoutMs, signal, stop.signal);
    const all = deadline.signal;
    const plan = planOf(options.spec, this.#backends.defaults, options.forEvaluation);
    const gpus = this.#gpusOf(plan, options);
    let runtime: Runtime | undefined;
    try {
      const isEarly = this.#backends.get(plan.backend).gpus === 'from_creation';
      const grant = isEarly ? await gpus?.granted(all) : undefined;
      runtime = await this.#maker.make({ plan, options, grant }, all);
      if (gpus !== undefined) runtime.giveGpus(gpus);
      all.throwIfAborted();
    } catch (error) {
      // Also of one that was begun, and that its backend has to clear up after.
      if (runtime === undefined) gpus?.leave();
      if (runtime !== undefined) await this.#discard(runtime, lost('failed'));
      stop.signal.throwIfAborted();
      signal.throwIfAborted();
      if (!deadline.isOver) throw preparationFailure(error, plan);
      throw new PolarError('PREPARE_TIMEOUT', `the sandbox was not prepared within ${timeoutMs} ms`, {
        cause: error,
      });
    }
    runtime.lease(options.leaseMs);
    this.#leased.set(runtime.id, runtime);
    events.runtimePrepared(this.#log, runtime);
    return runtime;
  }

  /** Undefined: it asks for none, or they are its backend's own matter. Throws BACKEND_UNAVAILABLE. */
  #gpusOf({ gpus, backend }: SandboxPlan, { owner }: AcquireOptions): RuntimeGpus | undefined {
    const { gpus: when, builtOn = [] } = this.#backends.get(backend);
    if (gpus === 0 || when === undefined) return undefined;
    this.#gpus.check(gpus, backend);
    // All sandboxes of an attempt have the same.
    const holder = owner.sessionId === '' ? newId('gpus') : keyOf(owner);
    return new RuntimeGpus(this.#gpus, { owner: holder, backends: [backend, ...builtOn] }, gpus, when);
  }

  async #remove(runtime: Runtime, cause: events.RemovalCause): Promise<void> {
    if (!this.#leased.delete(runtime.id)) return;
    this.onRemoved(runtime);
    await this.#discard(runtime, lost(cause));
    events.runtimeRemoved(this.#log, runtime, cause);
  }

  async #discard(runtime: Runtime, why: PolarError): Promise<void> {
    const removal = runtime.remove(why).catch((error) => events.removalFailed(this.#log, runtime, error));
    this.#removing.add(removal);
    await removal;
    this.#removing.delete(removal);
  }
}

/** Also of what the file system says: a sandbox that fills its own disk is the task's, a node's full disk is not. */
function preparationFailure(error: unknown, { storageMb }: SandboxPlan): unknown {
  if (error instanceof PolarError || !(error instanceof Error)) return error;
  const full = (error as NodeJS.ErrnoException).code === 'ENOSPC';
  if (full && storageMb > 0) {
    return new PolarError('PREPARE_FAILED', `more than runtime.storage_mb (${storageMb}): ${error.message}`, {
      cause: error,
    });
  }
  return new PolarError('SANDBOX_FAILED', `the sandbox could not be made: ${error.message}`, {
    cause: error,
  });
}

const keyOf = ({ sessionId, attempt }: AttemptKey): string => `${sessionId}.${attempt}`;

const keysOf = (attempts: readonly AttemptKey[]): ReadonlySet<string> => new Set(attempts.map(keyOf));

const lost = (cause: events.RemovalCause): PolarError =>
  new PolarError(cause === 'stopped' ? 'SHUTTING_DOWN' : 'RUNTIME_LOST', `the sandbox was removed: ${cause}`);
