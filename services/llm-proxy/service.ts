// The llm-proxy: stands between harnesses and the engine, and records every call before its reply ends.
import { dirname } from 'node:path';
import { EvaluatorService } from '../../gen/ts/polar/evaluator/v1/evaluator_service_pb.js';
import { HarnessService } from '../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { ProxyService } from '../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { PolicyService } from '../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { openGuards } from '../common/access/open.ts';
import { settledWithin } from '../common/clock.ts';
import { makeFoldersOf } from '../common/folders.ts';
import type { RunningService } from '../common/lifecycle.ts';
import { STOP_GRACE_MS } from '../common/limits.ts';
import type { Logger } from '../common/logger.ts';
import { shortSocketPath } from '../common/proxy-socket.ts';
import { type RunningServer, startServer } from '../common/server.ts';
import type { LlmProxyConfig } from './config.ts';
import { createContext, type LlmProxyContext } from './context.ts';
import { harnessHandler } from './http/handler.ts';
import { routes } from './routes/index.ts';

export class LlmProxyService implements RunningService {
  /** Nothing that this service needs can fail for good: NATS and the engine come back. */
  readonly failed = new Promise<never>(() => {});
  readonly #context: LlmProxyContext;
  readonly #server: RunningServer;

  private constructor(context: LlmProxyContext, server: RunningServer) {
    this.#context = context;
    this.#server = server;
  }

  /** Knows all capabilities, then listens; ready when it listens. */
  static async start(config: LlmProxyConfig, log: Logger, signal: AbortSignal): Promise<LlmProxyService> {
    const guards = openGuards(config, log, config.node.host);
    await using opened = new AsyncDisposableStack();
    const context = opened.use(await createContext(config, log, signal));
    const server = await startServer({
      ...guards,
      host: config.node.host,
      port: config.node.port,
      services: [ProxyService, PolicyService, HarnessService, EvaluatorService].map(
        ({ typeName }) => typeName,
      ),
      routes: (router) => routes(router, context),
      http: harnessHandler(context),
      httpSocket: openSocketPath(config.proxySocket),
      // Harnesses on this machine know no certificates.
      httpPort: guards.tls && config.node.harness_port,
    });
    const service = new LlmProxyService(context, server);
    opened.move();
    server.readiness.set(true);
    log.info({ port: server.port }, 'ready');
    return service;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.close();
    // Calls that the server has cut are still to be recorded.
    await settledWithin(this.#context.attempts.settled(), STOP_GRACE_MS / 2);
    await this.#context[Symbol.asyncDispose]();
  }
}

/** In a folder that is the node's own. */
function openSocketPath(path: string): string {
  makeFoldersOf('data_dir', dirname(path));
  return shortSocketPath(path);
}
