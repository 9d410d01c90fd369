// The engines of one model, and calls at them.
import { PolarError } from '../../common/errors.ts';
import { ENGINE_FEATURES } from '../domain/engine-features.ts';
import { type CallOrder, type EngineCall, TextCall } from './engine-call.ts';
import { Leases } from './leases.ts';
import type { Member } from './member.ts';
import { failedAt, type Place, PlacedCall } from './placed-call.ts';
import { Places } from './places.ts';
import { Programs } from './programs.ts';
import { retried } from './retry.ts';
import { Roster } from './roster.ts';
import type { PoolSpec } from './spec.ts';

export class Pool implements Disposable {
  readonly spec: PoolSpec;
  readonly #roster: Roster;
  readonly #places: Places;
  readonly #leases: Leases;
  readonly #programs: Programs | undefined;
  readonly #closed = new AbortController();
  /** Engines that have failed a call that goes on. */
  readonly #failed = new WeakMap<CallOrder, Set<Member>>();

  constructor(spec: PoolSpec, nodeId: string) {
    this.spec = spec;
    const name = spec.alias === '' ? 'the policy' : spec.alias;
    this.#places = new Places(name, spec.queueMs, () => this.members);
    this.#roster = new Roster(spec, () => this.#places.pump());
    this.#leases = new Leases(spec.alias, spec.sessionsMax);
    if (spec.scheduler === 'thunderagent') this.#programs = new Programs(nodeId);
  }

  [Symbol.dispose](): void {
    this.#closed.abort(new PolarError('SHUTTING_DOWN', 'the proxy is stopping; call again'));
    this.#roster[Symbol.dispose]();
  }

  get members(): readonly Member[] {
    return this.#roster.members;
  }

  /** Calls that wait for a place at one. */
  get waiting(): number {
    return this.#places.waiting;
  }

  /** All engines that there are now. Throws ENGINE_UNAVAILABLE where a router does not tell them. */
  found(signal: AbortSignal): Promise<readonly Member[]> {
    return this.#roster.found(signal);
  }

  /** The model that calls name. */
  async model(signal: AbortSignal): Promise<string> {
    if (this.spec.model !== '') return this.spec.model;
    return await retried(signal, async () => {
      const members = await this.found(signal);
      const member = members.find(({ up, draining }) => up && !draining) ?? members[0];
      if (member === undefined) throw this.#roster.noEngine();
      return await member.engine.model(signal);
    });
  }

  /** A try of the call. Throws ENGINE_UNAVAILABLE, ENGINE_BUSY, POOL_SESSIONS_LIMIT, the signal's reason. */
  async begin(order: CallOrder, signal: AbortSignal): Promise<PlacedCall> {
    const session = sessionOf(order);
    this.#requireOffered(order);
    await this.found(signal);
    this.#leases.take(session);
    const failed = this.#failed.get(order) ?? NONE;
    const member = await this.#places.take({ session, failed }, signal);
    const place = this.#placeAt(member, order);
    try {
      const call = this.#callAt(member, await member.engine.model(signal), this.#ordered(order, place));
      return new PlacedCall(call, place);
    } catch (error) {
      place.leave();
      throw failedAt(place, error);
    }
  }

  /** Calls of the attempt may have been made before this process was. */
  mayKnow(session: string): void {
    this.#programs?.mayKnow(session);
  }

  /** No call of the attempt will follow. Throws ENGINE_UNAVAILABLE where a scheduler cannot be told. */
  async end(session: string): Promise<void> {
    this.#places.forget(session);
    this.#leases.giveBack(session);
    const [scheduler] = this.members;
    if (scheduler !== undefined) await this.#programs?.end(session, scheduler.engine, this.#closed.signal);
  }

  /** Take the engines at this address out of use, or back in. */
  drain(url: string, draining: boolean): readonly Member[] {
    const found = this.#roster.at(url);
    for (const member of found) {
      member.draining = draining;
      this.#roster.left(member);
    }
    this.#places.pump();
    return found;
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
    if (this.#programs === undefined && !(chat.stream && madeStream)) return order;
    const program = this.#programs?.begin(sessionOf(order));
    const fields = program === undefined ? chat.fields : { ...chat.fields, program_id: program };
    return { ...order, chat: { ...chat, fields, stream: chat.stream && !madeStream } };
  }

  /** Whether there is another one that has not. */
  #haveFailed(order: CallOrder, member: Member): boolean {
    const failed = this.#failed.get(order) ?? new Set();
    this.#failed.set(order, failed.add(member));
    return this.members.some((other) => other.up && !other.draining && !failed.has(other));
  }

  #placeAt(member: Member, order: CallOrder): Place {
    const { wholeIds, streamedIds, routedExperts } = member.engine.adapter.features;
    const { madeStreams, experts } = this.spec;
    const isInWhole = (wholeIds && streamedIds === 'never') || (experts && routedExperts === 'whole');
    return {
      madeStream: madeStreams || isInWhole === true,
      trainable: this.spec.alias === '',
      leave: () => this.#leave(member),
      failed: () => this.#haveFailed(order, member),
    };
  }

  #leave(member: Member): void {
    this.#places.leave(member);
    this.#roster.left(member);
  }
}

const NONE: ReadonlySet<Member> = new Set();

/** What a session is known by: two attempts at one are two, as they may overlap for a moment. */
export const sessionOf = ({ sessionId, attempt }: Pick<CallOrder, 'sessionId' | 'attempt'>): string =>
  `${sessionId}.${attempt}`;
