// runtime-prewarm: makes, leases and reaps the sandboxes of one node; pulls `prepare` work, publishes `ready` facts.
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { openGuards } from '../common/access/open.ts';
import type { RunningService } from '../common/lifecycle.ts';
import type { Logger } from '../common/logger.ts';
import { type RunningServer, startServer } from '../common/server.ts';
import type { RuntimePrewarmConfig } from './config.ts';
import { consumeControl } from './consumers/control.ts';
import { awaitPlace, sayGoodbye, sendHeartbeats } from './consumers/heartbeat.ts';
import { watchLeases } from './consumers/leases.ts';
import { consumePrepareWork } from './consumers/prepare.ts';
import { createContext, type RuntimePrewarmContext } from './context.ts';
import { execBytes } from './routes/exec.ts';
import { routes } from './routes/index.ts';

export class RuntimePrewarmService implements RunningService {
  readonly failed: Promise<never>;
  readonly #context: RuntimePrewarmContext;
  readonly #server: RunningServer;
  readonly #running: Promise<unknown>;

  private constructor(context: RuntimePrewarmContext, server: RunningServer, signal: AbortSignal) {
    this.#context = context;
    this.#server = server;
    const tasks = [consumePrepareWork, consumeControl, sendHeartbeats, watchLeases];
    this.#running = Promise.all(tasks.map((task) => task(context, signal)));
    const never = this.#running.then(() => new Promise<never>(() => {}));
    this.failed = Promise.race([context.host.guardian.failed, never]);
    this.failed.catch(() => {});
  }

  /** Clears what an earlier start left, probes backends, then listens and consumes. */
  static async start(
    config: RuntimePrewarmConfig,
    log: Logger,
    signal: AbortSignal,
  ): Promise<RuntimePrewarmService> {
    const guards = openGuards(config, log, '127.0.0.1');
    await using opened = new AsyncDisposableStack();
    const context = opened.use(await createContext(config, log, signal));
    await awaitPlace(context, signal);
    const server = await startServer({
      ...guards,
      host: '127.0.0.1',
      port: config.node.runtime_prewarm_port,
      services: [RuntimeService.typeName],
      routes: (router) => routes(router, context),
      byteStreams: [execBytes(context)],
    });
    const service = new RuntimePrewarmService(context, server, signal);
    opened.move();
    server.readiness.set(true);
    log.info({ port: server.port, boot_id: context.bootId }, 'ready');
    return service;
  }

  /** Commands in flight end first, and the scheduler knows why before the port closes: who finds it closed tells a loss. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#context.runtimes.close();
    await this.#running.catch(() => {});
    await sayGoodbye(this.#context);
    await this.#server.close();
    await this.#context[Symbol.asyncDispose]();
  }
}
