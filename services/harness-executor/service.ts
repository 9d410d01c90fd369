// The harness executor: pulls `run` and `close` work of its node, publishes `ran` facts.
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { openGuards } from '../common/access/open.ts';
import type { RunningService } from '../common/lifecycle.ts';
import type { Logger } from '../common/logger.ts';
import { type RunningServer, startServer } from '../common/server.ts';
import type { HarnessExecutorConfig } from './config.ts';
import { consumeCloseWork } from './consumers/close.ts';
import { consumeRunWork } from './consumers/run.ts';
import { createContext, type HarnessExecutorContext } from './context.ts';
import { routes } from './routes/index.ts';

export class HarnessExecutorService implements RunningService {
  readonly failed: Promise<never>;
  readonly #context: HarnessExecutorContext;
  readonly #server: RunningServer;
  readonly #consuming: Promise<unknown>;

  private constructor(context: HarnessExecutorContext, server: RunningServer, signal: AbortSignal) {
    this.#context = context;
    this.#server = server;
    this.#consuming = Promise.all([consumeRunWork(context, signal), consumeCloseWork(context, signal)]);
    this.failed = this.#consuming.then(() => new Promise<never>(() => {}));
    this.failed.catch(() => {});
  }

  /** Connects, then listens, then consumes; ready when it consumes. */
  static async start(
    config: HarnessExecutorConfig,
    log: Logger,
    signal: AbortSignal,
  ): Promise<HarnessExecutorService> {
    const guards = openGuards(config, log, '127.0.0.1');
    await using opened = new AsyncDisposableStack();
    const context = opened.use(await createContext(config, log, signal));
    const server = await startServer({
      ...guards,
      host: '127.0.0.1',
      port: config.node.harness_executor_port,
      services: [HarnessService.typeName],
      routes: (router) => routes(router, context),
    });
    const service = new HarnessExecutorService(context, server, signal);
    opened.move();
    server.readiness.set(true);
    log.info({ port: server.port }, 'ready');
    return service;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close();
    await this.#consuming.catch(() => {});
    await this.#context[Symbol.asyncDispose]();
  }
}
