// Makes prepared sandboxes: a clone of the layer where what is asked for was prepared before, else step by step, and what
// that wrote becomes the layer. One preparation at a time makes a layer; the others wait for it.
import { abortable, sleep } from '../../common/clock.ts';
import { newId } from '../../common/ids.ts';
import type { Logger } from '../../common/logger.ts';
import type { BackendName } from '../../common/specs/catalogue.ts';
import type { Backend, BoxSpec, Layers } from '../backends/backend.ts';
import type { Backends } from '../backends/backends.ts';
import { isLayered, layerKey } from '../domain/layer.ts';
import type { AcquireOptions } from '../domain/lease.ts';
import type { SandboxPlan } from '../domain/plan.ts';
import { type Rate, TokenBucket } from '../domain/token-bucket.ts';
import * as events from '../events.ts';
import { runPrepareSteps } from './prepare.ts';
import { Runtime } from './runtime.ts';

export interface Order {
  readonly plan: SandboxPlan;
  readonly options: AcquireOptions;
}

export interface MakerOptions {
  readonly backends: Backends;
  /** At which sandboxes are made, clones aside; of none: as they are asked for. */
  readonly rates: ReadonlyMap<BackendName, Rate>;
  readonly log: Logger;
}

/** Deletes a sandbox that nobody gets. */
export type Discard = (runtime: Runtime) => Promise<void>;

/** Preparations of others that one waits for before it goes ahead alone: they may fail, or their sessions be cancelled. */
const WAITS_MAX = 2;

export class Maker {
  readonly #backends: Backends;
  readonly #discard: Discard;
  readonly #log: Logger;
  /** Preparations that are to become a layer, by its key. */
  readonly #making = new Map<string, Promise<unknown>>();

  readonly #buckets: ReadonlyMap<BackendName, TokenBucket>;

  constructor({ backends, rates, log }: MakerOptions, discard: Discard) {
    this.#backends = backends;
    this.#discard = discard;
    this.#log = log;
    this.#buckets = new Map([...rates].map(([name, rate]) => [name, new TokenBucket(rate)]));
  }

  /** Throws BACKEND_UNAVAILABLE, IMAGE_NOT_FOUND, SANDBOX_FAILED, what a step throws, and the signal's reason. */
  async make(order: Order, signal: AbortSignal): Promise<Runtime> {
    const { plan } = order;
    const backend = this.#backends.get(plan.backend);
    const { layers } = backend;
    if (layers === undefined || !isLayered(plan)) return await this.#prepare(backend, order, signal);
    const key = layerKey(plan, await layers.identityOf(plan.image));
    for (let waits = 0; ; waits++) {
      const clone = await this.#clone(backend, layers, key, order);
      if (clone !== undefined) return clone;
      const making = this.#making.get(key);
      if (making === undefined) return await this.#makeLayer(backend, key, order, signal);
      if (waits === WAITS_MAX) return await this.#prepare(backend, order, signal);
      await abortable(making, signal);
    }
  }

  async #makeLayer(backend: Backend, key: string, order: Order, signal: AbortSignal): Promise<Runtime> {
    const made = this.#prepareLayer(backend, key, order, signal);
    this.#making.set(
      key,
      made.catch(() => {}),
    );
    try {
      return await made;
    } finally {
      this.#making.delete(key);
    }
  }

  async #prepareLayer(backend: Backend, key: string, order: Order, signal: AbortSignal): Promise<Runtime> {
    const begin = performance.now();
    const first = await this.#prepare(backend, order, signal);
    try {
      const bytes = await first.freeze(key);
      if (bytes === 0) return first;
      events.layerMade(this.#log, key, bytes, performance.now() - begin);
    } catch (error) {
      await this.#discard(first);
      throw error;
    }
    const [clone] = await Promise.all([
      backend.layers && this.#clone(backend, backend.layers, key, order),
      this.#discard(first),
    ]);
    // The preparation was this attempt's own.
    clone?.denied.add(first.denied);
    return clone ?? (await this.#prepare(backend, order, signal));
  }

  async #clone(
    backend: Backend,
    layers: Layers,
    key: string,
    { plan, options }: Order,
  ): Promise<Runtime | undefined> {
    const spec = boxSpec(plan, options);
    const box = await layers.clone(key, spec);
    return box && new Runtime(spec.id, plan, options, box, backend.isolates);
  }

  /** Step by step. */
  async #prepare(backend: Backend, { plan, options }: Order, signal: AbortSignal): Promise<Runtime> {
    const spec = boxSpec(plan, options);
    const waitMs = this.#buckets.get(backend.name)?.take(performance.now()) ?? 0;
    if (waitMs > 0) await sleep(waitMs, signal);
    signal.throwIfAborted();
    const box = await backend.create(spec, signal);
    const runtime = new Runtime(spec.id, plan, options, box, backend.isolates);
    try {
      await runPrepareSteps(runtime, options.timeoutMs, signal);
      signal.throwIfAborted();
      return runtime;
    } catch (error) {
      await this.#discard(runtime);
      throw error;
    }
  }
}

function boxSpec({ image, limits, gpus, storageMb }: SandboxPlan, { owner }: AcquireOptions): BoxSpec {
  return { id: newId('rt'), session: owner.sessionId, image, limits, gpus, storageMb };
}
