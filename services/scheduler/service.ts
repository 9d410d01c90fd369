// The scheduler: takes tasks, gives their sessions to nodes, joins what comes back. The only writer of session state. Of
// several processes one leads by a lease; the others follow, refuse calls with the leader's address, and take over.
import type { ServiceImpl } from '@connectrpc/connect';
import type { LeaseRecord } from '../../gen/ts/polar/event/v1/state_pb.js';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { openGuards } from '../common/access/open.ts';
import { asPolarError, PolarError } from '../common/errors.ts';
import type { RunningService } from '../common/lifecycle.ts';
import { LEASE_POLL_MS } from '../common/limits.ts';
import type { Logger } from '../common/logger.ts';
import { type Bus, openBus } from '../common/nats/bus.ts';
import { type RunningServer, startServer } from '../common/server.ts';
import type { SchedulerConfig } from './config.ts';
import type { ContextOverrides } from './context.ts';
import * as events from './events.ts';
import { guardedRoutes } from './lease/guarded-routes.ts';
import { Leader } from './lease/leader.ts';
import { Lease } from './lease/lease.ts';
import { placeOf } from './lease/place.ts';
import { showLead } from './metrics.ts';

export class SchedulerService implements RunningService {
  readonly #bus: Bus;
  readonly #lease: Lease;
  readonly #server: RunningServer;
  readonly #log: Logger;
  readonly #stop = new AbortController();
  readonly #keep = new AbortController();
  readonly #failed = Promise.withResolvers<never>();
  readonly #leading = Promise.withResolvers<void>();
  readonly #shown = showLead(() => this.isLeading);
  readonly #settled = Promise.withResolvers<void>();
  #leader: Leader | undefined;
  #stopping = false;
  #running: Promise<void> | undefined;

  private constructor(bus: Bus, lease: Lease, server: RunningServer, log: Logger) {
    this.#bus = bus;
    this.#lease = lease;
    this.#server = server;
    this.#log = log;
    for (const { promise } of [this.#failed, this.#leading, this.#settled]) promise.catch(() => {});
  }

  /** Listens, then leads or follows: resolves when it does one of them. */
  static async start(
    config: SchedulerConfig,
    log: Logger,
    signal: AbortSignal,
    overrides: ContextOverrides = {},
  ): Promise<SchedulerService> {
    const { host, port, public_url: publicUrl } = config.topology.rollout;
    const guards = openGuards(config, log, host);
    let service: SchedulerService | undefined;
    const server = await startServer({
      ...guards,
      host,
      port,
      services: [RolloutService.typeName],
      routes: (router) => guardedRoutes(router, () => handlersOf(service)),
    });
    let bus: Bus;
    try {
      bus = await openBus({ ...config.nats, name: 'scheduler', signal, log });
    } catch (error) {
      await server.close();
      throw error;
    }
    const lease = new Lease({ bus, publicUrl, place: placeOf(host, server.port) });
    service = new SchedulerService(bus, lease, server, log);
    service.#running = service.#run(config, signal, overrides);
    try {
      await Promise.race([service.#settled.promise, service.failed]);
      return service;
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Rejects when another scheduler has taken the lead. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** Resolves when this one leads. */
  get leading(): Promise<void> {
    return this.#leading.promise;
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#server.port;
  }

  get isLeading(): boolean {
    return this.#leader !== undefined && this.#lease.held;
  }

  /** What answers, while it leads. Throws NOT_LEADER, or why the lease cannot be renewed: NATS_UNAVAILABLE, NATS_STORE_FULL. */
  get handlers(): ServiceImpl<typeof RolloutService> {
    if (this.#leader !== undefined && this.isLeading) return this.#leader.handlers;
    const leaderUrl = this.#lease.leader?.publicUrl;
    if (leaderUrl !== undefined) {
      const message = `this scheduler follows the one at ${leaderUrl}: call that one`;
      throw new PolarError('NOT_LEADER', message, { leaderUrl, retryAfterMs: LEASE_POLL_MS });
    }
    if (this.#leader !== undefined) throw this.#lease.problem;
    throw takingOver();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    this.#shown[Symbol.dispose]();
    await this.#server.close();
    this.#stop.abort(new PolarError('SHUTTING_DOWN', 'the scheduler is stopping'));
    await this.#running;
    await this.#leader?.[Symbol.asyncDispose]();
    this.#keep.abort();
    await this.#lease.giveBack();
    await this.#bus.close();
  }

  /** Follows, then leads. */
  async #run(config: SchedulerConfig, given: AbortSignal, overrides: ContextOverrides): Promise<void> {
    const signal = AbortSignal.any([given, this.#stop.signal]);
    try {
      if (!(await this.#lease.acquire(signal, (leader) => this.#follow(leader)))) return;
      void this.#lease
        .keep(this.#keep.signal, () => this.#tellReady())
        .then(() => this.#keep.signal.aborted || this.#lost());
      const [bus, lease, log] = [this.#bus, this.#lease, this.#log];
      this.#leader = await Leader.start({ config, bus, lease, log, signal }, overrides);
      this.#leader.failed.catch((error) => this.#failed.reject(error));
      this.#tellReady();
      this.#log.info({ port: this.port }, 'ready');
      this.#leading.resolve();
      this.#settled.resolve();
    } catch (error) {
      this.#failed.reject(asPolarError(error));
    }
  }

  /** Ready is who answers calls: while NATS is away or full, nobody does. */
  #tellReady(): void {
    if (this.#leader !== undefined && !this.#stopping) this.#server.readiness.set(this.#lease.held);
  }

  #follow(leader: LeaseRecord): void {
    events.following(this.#log, leader);
    this.#server.readiness.set('following');
    this.#settled.resolve();
  }

  #lost(): void {
    const leaderUrl = this.#lease.leader?.publicUrl;
    const error = new PolarError(
      'STATE_FENCED',
      `another scheduler leads${leaderUrl ? `: ${leaderUrl}` : ''}`,
    );
    this.#leader?.close(error);
    this.#failed.reject(error);
  }
}

function handlersOf(service: SchedulerService | undefined): ServiceImpl<typeof RolloutService> {
  if (service === undefined) throw takingOver();
  return service.handlers;
}

const takingOver = (): PolarError =>
  new PolarError('NOT_LEADER', 'this scheduler is starting or taking over; call again', {
    retryAfterMs: LEASE_POLL_MS,
  });
