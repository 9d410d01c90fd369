// Makes prepared sandboxes: a clone of the layer where what is asked for was prepared before, else step by step, and what
// that wrote becomes the layer. One preparation at a time makes a layer; the others wait for it.
import { abortable, Deadline, sleep } from '../../common/clock.ts';
import { newId } from '../../common/ids.ts';
import type { Logger } from '../../common/logger.ts';
import type { Backend, BoxSpec, Layers } from '../backends/backend.ts';
import type { Backends } from '../backends/backends.ts';
import type { GpuGrant } from '../domain/gpus.ts';
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
  /** What it has from its creation on. */
  readonly grant?: GpuGrant | undefined;
}

/** An order that a layer of this key can be for. */
interface LayeredOrder extends Order {
  readonly backend: Backend;
  readonly layers: Layers;
  /** Of the image. */
  readonly identity: string;
  readonly key: string;
}

export interface MakerOptions {
  readonly backends: Backends;
  /** At which sandboxes are made, clones that cost nothing aside; of none: as they are asked for. */
  readonly rates: ReadonlyMap<string, Rate>;
  readonly log: Logger;
}

/** Deletes a sandbox that nobody gets. */
export type Discard = (runtime: Runtime) => Promise<void>;

/** Preparations of others that one waits for before it goes ahead alone: they may fail, or their sessions be cancelled. */
const WAITS_MAX = 2;

/** Share of one's own time that goes into that: what is left has to do for a preparation. */
const WAITS_SHARE = 1 / 3;

/** Share of what is left that making a layer may take: the sandbox is ready, and is to be had in any case. */
const FREEZE_SHARE = 1 / 2;

/** A preparation that was not kept is kept the next time, perhaps, after that. */
const LAYER_RETRY_MS = 60_000;
/** Such preparations that are remembered; the longest-known is forgotten. */
const UNKEPT_MAX = 1_000;

/** How often one that nobody waits for looks whether somebody does by now. */
const PATIENT_LOOK_MS = 250;

export class Maker {
  readonly #backends: Backends;
  readonly #discard: Discard;
  readonly #log: Logger;
  /** Preparations that are to become a layer, by its key. */
  readonly #making = new Map<string, Promise<unknown>>();
  /**
   * Keys of which there is no layer, as there was no room or it was not worth one, and until when that stays so. Then it is
   * tried again, and nobody waits for it until it has been made.
   */
  readonly #unkept = new Map<string, number>();
  readonly #buckets: ReadonlyMap<string, TokenBucket>;

  constructor({ backends, rates, log }: MakerOptions, discard: Discard) {
    this.#backends = backends;
    this.#discard = discard;
    this.#log = log;
    this.#buckets = new Map([...rates].map(([name, rate]) => [name, new TokenBucket(rate)]));
  }

  /** Throws BACKEND_UNAVAILABLE, IMAGE_NOT_FOUND, SANDBOX_FAILED, what a step throws, and the signal's reason. */
  async make(order: Order, signal: AbortSignal): Promise<Runtime> {
    const backend = this.#backends.get(order.plan.backend);
    const release = backend.keep?.(order.plan.image);
    try {
      return await this.#make(backend, order, signal);
    } finally {
      release?.();
    }
  }

  async #make(backend: Backend, order: Order, signal: AbortSignal): Promise<Runtime> {
    const { plan, options } = order;
    const begin = performance.now();
    const leftMs = (): number => begin + options.timeoutMs - performance.now();
    const { layers } = backend;
    if (layers === undefined || !isLayered(plan)) return await this.#prepare(backend, order, signal);
    const identity = await layers.identityOf(plan.image, signal);
    const key = layerKey(plan, identity);
    const layered = { ...order, backend, layers, identity, key };
    for (let waits = 0; ; waits++) {
      const clone = await this.#clone(layered, signal);
      if (clone !== undefined) return clone;
      if (this.#isUnkept(key)) return await this.#prepare(backend, order, signal);
      const making = this.#making.get(key);
      if (making === undefined) return await this.#makeLayer(layered, leftMs, signal);
      const waitMs = leftMs() - options.timeoutMs * (1 - WAITS_SHARE);
      if (waits === WAITS_MAX || this.#unkept.has(key) || !(await settles(making, waitMs, signal))) {
        return await this.#prepare(backend, order, signal);
      }
    }
  }

  async #makeLayer(order: LayeredOrder, leftMs: () => number, signal: AbortSignal): Promise<Runtime> {
    const made = this.#prepareLayer(order, leftMs, signal);
    this.#making.set(
      order.key,
      made.catch(() => {}),
    );
    try {
      return await made;
    } finally {
      this.#making.delete(order.key);
    }
  }

  async #prepareLayer(order: LayeredOrder, leftMs: () => number, signal: AbortSignal): Promise<Runtime> {
    const { backend, layers, key } = order;
    const begin = performance.now();
    const first = await this.#prepare(backend, order, signal);
    try {
      const isWorth = first.stepsMs >= layers.worthMs;
      const bytes = isWorth ? await first.freeze(key, signal, leftMs() * FREEZE_SHARE) : 0;
      if (bytes === 0) this.#keepNone(key);
      else {
        this.#unkept.delete(key);
        events.layerMade(this.#log, key, bytes, performance.now() - begin);
      }
      if (bytes === 0 || layers.keepsFirst) return first;
    } catch (error) {
      await this.#discard(first);
      throw error;
    }
    const [clone] = await Promise.all([this.#clone(order, signal), this.#discard(first)]);
    // The preparation was this attempt's own.
    clone?.denied.add(first.denied);
    return clone ?? (await this.#prepare(backend, order, signal));
  }

  /** For a while nobody waits for a layer of that key. */
  #keepNone(key: string): void {
    this.#unkept.delete(key);
    for (const [oldest] of this.#unkept) if (this.#unkept.size >= UNKEPT_MAX) this.#unkept.delete(oldest);
    this.#unkept.set(key, performance.now() + LAYER_RETRY_MS);
  }

  #isUnkept(key: string): boolean {
    return (this.#unkept.get(key) ?? 0) > performance.now();
  }

  async #clone(
    { plan, options, grant, backend, layers, identity, key }: LayeredOrder,
    signal: AbortSignal,
  ): Promise<Runtime | undefined> {
    if (!layers.has(key)) return undefined;
    if (!layers.areFree) await this.#turn(backend.name, options, signal);
    const spec = boxSpec(plan, options, grant);
    const box = await layers.clone(key, spec, signal, identity);
    return box && new Runtime(spec.id, plan, options, box, backend.isolates);
  }

  /** Step by step. */
  async #prepare(backend: Backend, { plan, options, grant }: Order, signal: AbortSignal): Promise<Runtime> {
    const spec = boxSpec(plan, options, grant);
    await this.#turn(backend.name, options, signal);
    const box = await backend.create(spec, signal);
    const runtime = new Runtime(spec.id, plan, options, box, backend.isolates);
    try {
      const begin = performance.now();
      await runPrepareSteps(runtime, options.timeoutMs, signal);
      runtime.stepsMs = performance.now() - begin;
      signal.throwIfAborted();
      return runtime;
    } catch (error) {
      await this.#discard(runtime);
      throw error;
    }
  }

  /** Where sandboxes are made at a rate. One that nobody waits for takes a token that is left, never the next one. */
  async #turn(name: string, { isPatient }: AcquireOptions, signal: AbortSignal): Promise<void> {
    const bucket = this.#buckets.get(name);
    if (bucket !== undefined) {
      for (let waitMs = 1; waitMs > 0 && isPatient?.() === true && !signal.aborted; ) {
        waitMs = bucket.waitMs(performance.now());
        await sleep(Math.min(waitMs, PATIENT_LOOK_MS), signal);
      }
      await sleep(bucket.take(performance.now()), signal);
      // Else those that give up keep it from those who wait, and these give up too.
      if (signal.aborted) bucket.giveBack();
    }
    signal.throwIfAborted();
  }
}

/** Whether it settles within `ms`. Throws the signal's reason. */
async function settles(promise: Promise<unknown>, ms: number, signal: AbortSignal): Promise<boolean> {
  using deadline = new Deadline(Math.max(0, ms), signal);
  try {
    await abortable(promise, deadline.signal);
    return true;
  } catch (error) {
    if (!deadline.isOver) throw error;
    return false;
  }
}

function boxSpec(
  { image, limits, gpus, storageMb }: SandboxPlan,
  { owner }: AcquireOptions,
  grant: GpuGrant | undefined,
): BoxSpec {
  const id = newId('rt');
  return { id, session: owner.sessionId, image, limits, gpus, storageMb, ...(grant && { grant }) };
}
