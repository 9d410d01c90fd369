// Composition root: what routes and consumers get.
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createServiceClient } from '../common/client.ts';
import { localUrl } from '../common/config/public-url.ts';
import type { Runtimes } from '../common/exec.ts';
import { Kept } from '../common/kept.ts';
import { ENDED_WORK_KEPT_MAX } from '../common/limits.ts';
import type { Logger } from '../common/logger.ts';
import { type BlobStore, createBlobStore } from '../common/nats/blobs.ts';
import { type Bus, openBus } from '../common/nats/bus.ts';
import { createRecords, type Records } from '../common/nats/records.ts';
import { Once } from '../common/once.ts';
import type { EvaluatorConfig } from './config.ts';
import type { Tries } from './domain/tries.ts';
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
  return {
    config,
    log,
    bus,
    blobs,
    records: createRecords(bus, blobs),
    runtimes: createServiceClient(
      RuntimeService,
      localUrl(config.topology, config.node.runtime_prewarm_port),
      {
        token: config.token,
        tls: config.tls,
      },
    ),
    done: new Once(),
    tries: new Kept(ENDED_WORK_KEPT_MAX),
    [Symbol.asyncDispose]: () => bus.close(),
  };
}
