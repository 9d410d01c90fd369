// The scheduler: takes tasks, gives their sessions to nodes, joins what comes back. The only writer of session state.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { RolloutService } from '../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import type { RunningService } from '../common/lifecycle.ts';
import type { Logger } from '../common/logger.ts';
import { type RunningServer, startServer } from '../common/server.ts';
import type { SchedulerConfig } from './config.ts';
import { consumeFacts } from './consumers/facts.ts';
import { answerHeartbeats } from './consumers/heartbeats.ts';
import { type ContextOverrides, createContext, type SchedulerContext } from './context.ts';
import { resendWork, restore } from './dispatch/recovery.ts';
import { routes } from './routes/index.ts';

export class SchedulerService implements RunningService {
  readonly failed: Promise<never>;
  readonly #context: SchedulerContext;
  readonly #server: RunningServer;
  readonly #running: Promise<unknown>;

  private constructor(context: SchedulerContext, server: RunningServer) {
    this.#context = context;
    this.#server = server;
    this.failed = context.failed;
    restore(context);
    answerHeartbeats(context);
    this.#running = Promise.allSettled([
      consumeFacts(context),
      context.dispatcher.run(context.signal),
      context.stateLog.run(),
      resendWork(context),
    ]);
  }

  /** Takes over the state log, listens, then answers and consumes. */
  static async start(
    config: SchedulerConfig,
    log: Logger,
    signal: AbortSignal,
    overrides: ContextOverrides = {},
  ): Promise<SchedulerService> {
    const { host, port } = config.topology.rollout;
    await checkPort(host, port);
    const context = await createContext(config, log, signal, overrides);
    try {
      const server = await startServer({
        host,
        port,
        services: [RolloutService.typeName],
        routes: (router) => routes(router, context),
      });
      const service = new SchedulerService(context, server);
      server.readiness.set(true);
      log.info({ port: server.port }, 'ready');
      return service;
    } catch (error) {
      context.stop();
      await context[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The port that it listens on. */
  get port(): number {
    return this.#server.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close();
    this.#context.stop();
    await this.#running;
    await this.#context.effects.idle();
    await this.#context[Symbol.asyncDispose]();
  }
}

/** One that cannot listen must not take the state over from one that works. Throws EADDRINUSE. */
async function checkPort(host: string, port: number): Promise<void> {
  const probe = createServer().listen(port, host);
  await once(probe, 'listening');
  probe.close();
  await once(probe, 'close');
}
