// Composition root: what routes and consumers get.
import type { TaskSpec } from '../../gen/ts/polar/common/v1/task_pb.js';
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { type AskScheduler, createScheduler } from '../common/ask-scheduler.ts';
import { createServiceClient } from '../common/client.ts';
import { localUrl } from '../common/config/public-url.ts';
import type { Runtimes } from '../common/exec.ts';
import { Kept } from '../common/kept.ts';
import { ENDED_WORK_KEPT_MAX, SPECS_CACHED_MAX } from '../common/limits.ts';
import type { Logger } from '../common/logger.ts';
import { type BlobStore, createBlobStore } from '../common/nats/blobs.ts';
import { type Bus, openBus } from '../common/nats/bus.ts';
import { createRecords, type Records } from '../common/nats/records.ts';
import { Once } from '../common/once.ts';
import type { EvaluatorConfig } from './config.ts';
import type { Tries } from './domain/tries.ts';
import { Places } from './evaluations/places.ts';
import type { Verdict } from './evaluators/evaluator.ts';

export interface EvaluatorContext extends AsyncDisposable {
  readonly config: EvaluatorConfig;
  readonly log: Logger;
  readonly bus: Bus;
  readonly blobs: BlobStore;
  /** Model calls of attempts. */
  readonly records: Records;
  /** Sandboxes of this node. */
  readonly runtimes: Runtimes;
  /** Evaluations that this process holds or has ended. */
  readonly done: Once;
  readonly places: Places;
  /** The scheduler that leads. */
  readonly ask: AskScheduler;
  /** Of tasks that are graded again, by id: a task never changes. */
  readonly specs: Kept<Promise<TaskSpec>>;
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal;
  /** By session and attempt. */
  readonly tries: Kept<Tries<Verdict>>;
}

export async function createContext(
  config: EvaluatorConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<EvaluatorContext> {
  const bus = await openBus({ ...config.nats, name: `evaluator-${config.node.id}`, signal, log });
  const blobs = createBlobStore(bus);
  const credentials = { token: config.token, tls: config.tls };
  return {
    config,
    log,
    bus,
    blobs,
    records: createRecords(bus, blobs),
    runtimes: createServiceClient(
      RuntimeService,
      localUrl(config.topology, config.node.runtime_prewarm_port),
      credentials,
    ),
    done: new Once(),
    places: new Places(config.node.max_postrun_workers),
    ask: createScheduler(bus, config.topology.rollout.public_url, credentials),
    specs: new Kept(SPECS_CACHED_MAX),
    stopping: signal,
    tries: new Kept(ENDED_WORK_KEPT_MAX),
    [Symbol.asyncDispose]: () => bus.close(),
  };
}
