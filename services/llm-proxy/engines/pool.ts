// The engines of one model: which there are, which are in use, and calls at them.
import { abortable, withTimeout } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { ENGINE_LOOK_MS, ENGINE_PROBE_MS } from '../../common/limits.ts';
import { ENGINE_FEATURES } from '../domain/engine-features.ts';
import { type CallOrder, type EngineCall, TextCall } from './engine-call.ts';
import { Leases } from './leases.ts';
import { Member } from './member.ts';
import { failedAt, type Place, PlacedCall } from './placed-call.ts';
import { Places } from './places.ts';
import { Programs } from './programs.ts';
import { retried } from './retry.ts';
import type { PoolSpec } from './spec.ts';
import { Workers } from './workers.ts';

export class Pool implements Disposable {
  readonly spec: PoolSpec;
  readonly #members = new Map<string, Member>();
  readonly #places: Places;
  readonly #leases: Leases;
  readonly #programs: Programs | undefined;
  readonly #workers: Workers | undefined;
  readonly #closed = new AbortController();
  readonly #timer: NodeJS.Timeout | undefined;
  /** Engines that have failed a call that goes on. */
  readonly #failed = new WeakMap<CallOrder, Set<Member>>();
  /** No longer in the router's list, with calls in flight. */
  readonly #gone = new Set<Member>();
  #found: Promise<void> | undefined;

  constructor(spec: PoolSpec, nodeId: string) {
    this.spec = spec;
    const name = spec.alias === '' ? 'the policy' : spec.alias;
    this.#places = new Places(name, spec.queueMs, () => this.members);
    this.#leases = new Leases(spec.alias, spec.sessionsMax);
    const [url = ''] = spec.urls;
    if (spec.scheduler === 'sglang_router') this.#workers = new Workers(url, spec);
    else for (const one of spec.urls) this.#members.set(one, new Member(one, spec));
    if (spec.scheduler === 'thunderagent') this.#programs = new Programs(nodeId);
    if (this.#workers !== undefined || spec.urls.length > 1) {
      this.#timer = setInterval(() => void this.#look(), ENGINE_LOOK_MS).unref();
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#closed.abort(new PolarError('SHUTTING_DOWN', 'the proxy is stopping; call again'));
    this.#workers?.[Symbol.dispose]();
    for (const member of [...this.#members.values(), ...this.#gone]) member[Symbol.dispose]();
  }

  get members(): readonly Member[] {
    return [...this.#members.values()];
  }

  /** All engines that there are now. Throws ENGINE_UNAVAILABLE where a router does not tell them. */
  async found(signal: AbortSignal): Promise<readonly Member[]> {
    if (this.#workers !== undefined) {
      this.#found ??= this.#discover(this.#workers);
      await abortable(this.#found, signal);
    }
    return this.members;
  }

  /** The model that calls name. */
  async model(signal: AbortSignal): Promise<string> {
    if (this.spec.model !== '') return this.spec.model;
    return await retried(signal, async () => {
      const members = await this.found(signal);
      const member = members.find(({ up, draining }) => up && !draining) ?? members[0];
      if (member === undefined) throw this.#noEngine();
      return await member.engine.model(signal);
    });
  }

  /** A try of the call. Throws ENGINE_UNAVAILABLE, ENGINE_BUSY, POOL_SESSIONS_LIMIT, the signal's reason. */
  async begin(order: CallOrder, signal: AbortSignal): Promise<PlacedCall> {
    const session = sessionOf(order);
    this.#requireOffered(order);
    await this.found(signal);
    this.#leases.take(session);
    const failed = this.#failedBy(order);
    const member = await this.#places.take({ session, failed }, signal);
    const place = this.#placeAt(member, failed);
    try {
      const call = this.#callAt(member, await member.engine.model(signal), this.#ordered(order, place));
      return new PlacedCall(call, place);
    } catch (error) {
      place.leave();
      throw failedAt(place, error);
    }
  }

  /** No call of the attempt will follow. Throws ENGINE_UNAVAILABLE where a scheduler cannot be told. */
  async end(session: string): Promise<void> {
    this.#places.forget(session);
    this.#leases.giveBack(session);
    const [scheduler] = this.members;
    if (scheduler !== undefined) await this.#programs?.end(session, scheduler.engine, this.#closed.signal);
  }

  /** Whether there is an engine at this address. */
  drain(url: string, draining: boolean): Member | undefined {
    const member = this.members.find(({ engine }) => engine.name === url) ?? this.#members.get(url);
    if (member === undefined) return undefined;
    member.draining = draining;
    this.#places.pump();
    return member;
  }

  #callAt({ engine }: Member, model: string, order: CallOrder): EngineCall {
    const call = new TextCall(engine, model, order);
    return order.pool === '' ? (order.inTokenMode?.(call) ?? call) : call;
  }

  #requireOffered({ chat }: CallOrder): void {
    if (chat.n === 1 || ENGINE_FEATURES[this.spec.kind].severalChoices) return;
    const message = `an engine of kind ${this.spec.kind} makes one reply a call, not ${chat.n}`;
    throw new PolarError('ENGINE_REFUSED', message, { fields: [{ field: 'n', description: 'must be 1' }] });
  }

  /** The order as the engine is to get it. */
  #ordered(order: CallOrder, { madeStream }: Place): CallOrder {
    const { chat } = order;
    const program = this.#programs?.begin(sessionOf(order));
    const fields = program === undefined ? chat.fields : { ...chat.fields, program_id: program };
    return { ...order, chat: { ...chat, fields, stream: chat.stream && !madeStream } };
  }

  #failedBy(order: CallOrder): Set<Member> {
    const failed = this.#failed.get(order) ?? new Set();
    this.#failed.set(order, failed);
    return failed;
  }

  #placeAt(member: Member, failed: Set<Member>): Place {
    const { wholeIds, streamedIds } = member.engine.adapter.features;
    return {
      madeStream: this.spec.madeStreams || (wholeIds && streamedIds === 'never'),
      trainable: this.spec.alias === '',
      leave: () => this.#leave(member),
      failed: () => {
        failed.add(member);
        return this.members.some((other) => other.up && !other.draining && !failed.has(other));
      },
    };
  }

  #leave(member: Member): void {
    this.#places.leave(member);
    if (member.load === 0 && this.#gone.delete(member)) member[Symbol.dispose]();
  }

  async #discover(workers: Workers): Promise<void> {
    try {
      this.#keep(await workers.list(this.#limit()));
    } catch (error) {
      this.#found = undefined;
      throw error instanceof PolarError ? error : this.#noEngine();
    }
  }

  /** For what the pool asks by itself. */
  #limit(): AbortSignal {
    return withTimeout(ENGINE_PROBE_MS, this.#closed.signal);
  }

  /** Engines that are gone from the list take no further calls; those in flight end. */
  #keep(urls: readonly string[]): void {
    for (const url of urls) {
      if (!this.#members.has(url)) this.#members.set(url, new Member(url, this.spec));
    }
    for (const [url, member] of this.#members) {
      if (urls.includes(url)) continue;
      this.#members.delete(url);
      member.draining = true;
      if (member.load === 0) member[Symbol.dispose]();
      else this.#gone.add(member);
    }
    this.#places.pump();
  }

  /** Ask engines that failed whether they are back, and the router who is there. */
  async #look(): Promise<void> {
    const limit = this.#limit();
    const down = this.members.filter(({ up }) => !up);
    // A probe that succeeds counts as an answer.
    const probes = down.map(({ engine }) => engine.probe(limit));
    const listed = this.#workers?.list(limit).then((urls) => this.#keep(urls));
    // A router that does not answer leaves the engines as they were.
    await Promise.all([...probes, listed?.catch(() => {})]);
    if (down.some(({ up }) => up)) this.#places.pump();
  }

  #noEngine(): PolarError {
    const message = `the router at ${this.spec.urls[0]} knows no workers`;
    return new PolarError('ENGINE_UNAVAILABLE', message, { retryAfterMs: ENGINE_LOOK_MS });
  }
}

/** What a session is known by: two attempts at one are two, as they may overlap for a moment. */
export const sessionOf = ({ sessionId, attempt }: Pick<CallOrder, 'sessionId' | 'attempt'>): string =>
  `${sessionId}.${attempt}`;
