// The policy at this proxy: the gate goes by it, the other proxies are heard, and a pause is led to its end.
import type { Subscription } from 'nats';
import { PauseMode, type Policy } from '../../../gen/ts/polar/event/v1/policy_pb.js';
import { sleep, withTimeout } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
import { POLICY_HEARTBEAT_MS, POLICY_LOST_MS, POLICY_POLL_MS, POLICY_ROUND_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { type PolicyState, PolicyWatch } from '../../common/nats/policy.ts';
import { subjects } from '../../common/nats/subjects.ts';
import { type Peer, Peers } from '../domain/peers.ts';
import {
  isServing,
  type Pause,
  paused,
  pausing,
  published,
  resumed,
  type Version,
} from '../domain/policy.ts';
import { policyChanged } from '../events.ts';
import { Gate } from './gate.ts';

export interface PoliciesOptions {
  readonly bus: Bus;
  readonly log: Logger;
  readonly nodeId: string;
  readonly signal: AbortSignal;
}

/** The pause that is asked for. */
export type Wish = Omit<Pause, 'nowMs'>;

export class Policies implements Disposable {
  readonly gate = new Gate(() => this.#tell());
  readonly #options: PoliciesOptions;
  readonly #bootId = newId('boot');
  readonly #peers = new Peers(POLICY_LOST_MS, POLICY_ROUND_MS);
  #watch!: PolicyWatch;
  #heard: Subscription | undefined;
  #beat: NodeJS.Timeout | undefined;

  private constructor(options: PoliciesOptions) {
    this.#options = options;
  }

  /** Returns when the policy is known: a proxy that starts during a pause holds calls from its first one on. */
  static async open(options: PoliciesOptions): Promise<Policies> {
    const policies = new Policies(options);
    const { bus, signal } = options;
    policies.#watch = await PolicyWatch.open({ bus, signal, onChange: (state) => policies.#apply(state) });
    policies.#heard = bus.nc.subscribe(subjects.policyHeartbeat, {
      callback: (error, message) => {
        if (error === null) policies.#hear(message.json<PeerMessage>());
      },
    });
    policies.#beat = setInterval(() => policies.#tick(), POLICY_HEARTBEAT_MS);
    policies.#tell();
    return policies;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#beat);
    this.#publish({ ...this.#self(), gone: true });
    this.#heard?.unsubscribe();
  }

  get state(): PolicyState {
    return this.#watch.state;
  }

  get peers(): readonly Peer[] {
    this.#peers.hear(this.#self(), performance.now());
    return this.#peers.alive(performance.now());
  }

  async publish(version: Version, signal: AbortSignal): Promise<PolicyState> {
    return await this.#watch.update((policy) => published(policy, version), signal);
  }

  /** Throws PAUSE_IN_PROGRESS, PAUSE_TIMEOUT (withdrawn: calls go on), the signal's reason (withdrawn too). */
  async pause({ id, mode, ttlMs }: Wish, timeoutMs: number, signal: AbortSignal): Promise<PolicyState> {
    const limit = withTimeout(timeoutMs, signal);
    const begun = await this.#watch.update(
      (policy) =>
        policy.pauseId === id ? undefined : pausing(policy, { id, mode, nowMs: Date.now(), ttlMs }),
      signal,
    );
    try {
      await this.#until(begun.revision, mode !== PauseMode.KEEP, limit);
      const state = await this.#watch.update((policy) => paused(policy, id), limit);
      if (state.policy.pauseId === id) return state;
      throw new PolarError('PAUSE_TIMEOUT', 'the pause was ended before it was reached');
    } catch (error) {
      await this.#withdraw(id);
      throw error;
    }
  }

  async resume(id: string, version: Version | undefined, signal: AbortSignal): Promise<PolicyState> {
    return await this.#watch.update((policy) => {
      const next = resumed(policy, id, this.#lasts(policy));
      return version === undefined ? next : (published(next ?? policy, version) ?? next);
    }, signal);
  }

  async #until(revision: number, drained: boolean, signal: AbortSignal): Promise<void> {
    for (;;) {
      const behind = this.#peers.behind(revision, drained, performance.now());
      if (behind.length === 0 && this.#peers.complete(performance.now())) return;
      if (signal.aborted) throw notReached(behind);
      await sleep(POLICY_POLL_MS, signal);
    }
  }

  async #withdraw(id: string): Promise<void> {
    const { signal } = this.#options;
    await this.#watch.update(
      (policy) => (policy.pauseId === id ? resumed(policy, id, this.#lasts(policy)) : undefined),
      signal,
    );
  }

  /** Its length by the steady clock: the wall clocks of who begins and who ends it may be apart. */
  #lasts({ pauseId }: Policy): number {
    return this.#watch.held.lastsMs(pauseId);
  }

  #apply(state: PolicyState): void {
    policyChanged(this.#options.log, state);
    this.gate.apply(state);
    this.#tell();
  }

  #tick(): void {
    this.#tell();
    const { policy, held } = this.#watch;
    // Its owner may be gone: any proxy ends it.
    if (!isServing(policy) && held.leftMs === 0) {
      void this.#withdraw(policy.pauseId).catch(() => {});
    }
  }

  #tell(): void {
    const self = this.#self();
    this.#peers.hear(self, performance.now());
    this.#publish(self);
  }

  #self(): Peer {
    const { inFlight, waiting } = this.gate;
    const revision = this.#watch === undefined ? 0 : this.#watch.state.revision;
    return { nodeId: this.#options.nodeId, bootId: this.#bootId, revision, inFlight, waiting };
  }

  #publish(message: PeerMessage): void {
    const { nc } = this.#options.bus;
    if (!nc.isClosed()) nc.publish(subjects.policyHeartbeat, JSON.stringify(message));
  }

  #hear({ gone, ...peer }: PeerMessage): void {
    if (peer.bootId === this.#bootId) this.#peers.hearSelf(performance.now());
    else if (gone === true) this.#peers.forget(peer.bootId);
    else this.#peers.hear(peer, performance.now());
  }
}

type PeerMessage = Peer & { readonly gone?: boolean };

function notReached(behind: readonly Peer[]): PolarError {
  const who = behind.map(({ nodeId, inFlight }) => `${nodeId} (${inFlight} calls in flight)`).join(', ');
  if (behind.length === 0) {
    return new PolarError('PAUSE_TIMEOUT', 'the other LLM proxies were not heard of in time; calls go on');
  }
  return new PolarError('PAUSE_TIMEOUT', `not paused within the timeout: ${who}; calls go on`);
}
