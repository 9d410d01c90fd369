// The reconstructor: pulls `build` work, publishes `built` facts, streams finished groups to trainers.
import { TrajectoryService } from '../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { openGuards } from '../common/access/open.ts';
import type { RunningService } from '../common/lifecycle.ts';
import type { Logger } from '../common/logger.ts';
import { type RunningServer, startServer } from '../common/server.ts';
import type { ReconstructorConfig } from './config.ts';
import { consumeBuildWork } from './consumers/build.ts';
import { consumeAnnouncements } from './consumers/pack.ts';
import { createContext, type ReconstructorContext } from './context.ts';
import { sweepAgain } from './retention/sweep.ts';
import { ackBytes } from './routes/ack-trajectories.ts';
import { routes } from './routes/index.ts';
import { trajectoryBytes } from './routes/stream-trajectories.ts';

/** Between two looks for trainers whose machines are gone: what their streams hold is for others. */
const CALLER_LOOK_MS = 5_000;

export class ReconstructorService implements RunningService {
  readonly failed: Promise<never>;
  readonly #context: ReconstructorContext;
  readonly #server: RunningServer;
  readonly #consuming: Promise<void>;

  private constructor(context: ReconstructorContext, server: RunningServer, signal: AbortSignal) {
    this.#context = context;
    this.#server = server;
    this.#consuming = Promise.all([
      consumeBuildWork(context, signal),
      consumeAnnouncements(context, signal),
      sweepAgain(context, signal),
    ]).then(() => {});
    this.failed = this.#consuming.then(() => new Promise<never>(() => {}));
    this.failed.catch(() => {});
  }

  /** Connects, then listens, then consumes; ready when it consumes. */
  static async start(
    config: ReconstructorConfig,
    log: Logger,
    signal: AbortSignal,
  ): Promise<ReconstructorService> {
    const { host, port } = config.topology.reconstructor;
    const guards = openGuards(config, log, host);
    await using opened = new AsyncDisposableStack();
    const context = opened.use(await createContext(config, log, signal));
    const server = await startServer({
      ...guards,
      host,
      port,
      services: [TrajectoryService.typeName],
      routes: (router) => routes(router, context),
      byteStreams: [trajectoryBytes(context)],
      byteCalls: [ackBytes(context)],
      lookMs: CALLER_LOOK_MS,
    });
    const service = new ReconstructorService(context, server, signal);
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
