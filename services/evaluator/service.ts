// The evaluator: pulls `evaluate` work of its node, publishes `evaluated` facts; and grades again who is asked for.
import { EvaluatorService as EvaluatorRpc } from '../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { openGuards } from '../common/access/open.ts';
import type { RunningService } from '../common/lifecycle.ts';
import type { Logger } from '../common/logger.ts';
import { type RunningServer, startServer } from '../common/server.ts';
import type { EvaluatorConfig } from './config.ts';
import { consumeEvaluateWork } from './consumers/evaluate.ts';
import { createContext, type EvaluatorContext } from './context.ts';
import { routes } from './routes/index.ts';

export class EvaluatorService implements RunningService {
  readonly failed: Promise<never>;
  readonly #context: EvaluatorContext;
  readonly #server: RunningServer;
  readonly #consuming: Promise<void>;

  private constructor(context: EvaluatorContext, server: RunningServer, signal: AbortSignal) {
    this.#context = context;
    this.#server = server;
    this.#consuming = consumeEvaluateWork(context, signal);
    this.failed = this.#consuming.then(() => new Promise<never>(() => {}));
    this.failed.catch(() => {});
  }

  /** Connects, then listens, then consumes; ready when it consumes. */
  static async start(config: EvaluatorConfig, log: Logger, signal: AbortSignal): Promise<EvaluatorService> {
    const guards = openGuards(config, log, '127.0.0.1');
    await using opened = new AsyncDisposableStack();
    const context = opened.use(await createContext(config, log, signal));
    const server = await startServer({
      ...guards,
      host: '127.0.0.1',
      port: config.node.evaluator_port,
      services: [EvaluatorRpc.typeName],
      routes: (router) => routes(router, context),
    });
    const service = new EvaluatorService(context, server, signal);
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
