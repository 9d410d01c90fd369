// Composition root: what routes, consumers and runs get.
import { ProxyService } from '../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createServiceClient } from '../common/client.ts';
import { localUrl } from '../common/config/public-url.ts';
import type { Runtimes } from '../common/exec.ts';
import type { Logger } from '../common/logger.ts';
import { type BlobStore, createBlobStore } from '../common/nats/blobs.ts';
import { type Bus, openBus } from '../common/nats/bus.ts';
import { PolicyWatch } from '../common/nats/policy.ts';
import { Once } from '../common/once.ts';
import { ArtifactStore } from './artifacts/artifact-store.ts';
import type { HarnessExecutorConfig } from './config.ts';
import { LogStore } from './logs/log-store.ts';
import type { ProxyClient } from './runs/close-session.ts';

export interface HarnessExecutorContext extends AsyncDisposable {
  readonly config: HarnessExecutorConfig;
  readonly log: Logger;
  readonly bus: Bus;
  readonly blobs: BlobStore;
  /** Sandboxes of this node. */
  readonly runtimes: Runtimes;
  /** The node's LLM proxy. */
  readonly proxy: ProxyClient;
  readonly logs: LogStore;
  readonly artifacts: ArtifactStore;
  /** Tells when calls are held: a harness's clock stops then. */
  readonly policy: PolicyWatch;
  readonly runs: Once;
}

export async function createContext(
  config: HarnessExecutorConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<HarnessExecutorContext> {
  const logs = await LogStore.open(config.logsDir);
  const artifacts = await ArtifactStore.open(config.artifactsDir);
  await using opened = new AsyncDisposableStack();
  const bus = await openBus({ ...config.nats, name: `harness-executor-${config.node.id}`, signal, log });
  opened.defer(() => bus.close());
  const closed = new AbortController();
  opened.defer(() => closed.abort());
  // Before a credential is deleted: its mark may end, also in a bucket that an older mesh made.
  await bus.kv('capabilities');
  const policy = await PolicyWatch.open({ bus, signal: AbortSignal.any([signal, closed.signal]) });
  const runtimesUrl = localUrl(config.topology, config.node.runtime_prewarm_port);
  const credentials = { token: config.token, tls: config.tls };
  const all = opened.move();
  return {
    config,
    log,
    bus,
    blobs: createBlobStore(bus),
    runtimes: createServiceClient(RuntimeService, runtimesUrl, credentials),
    proxy: createServiceClient(ProxyService, config.proxyUrl, credentials),
    logs,
    artifacts,
    policy,
    runs: new Once(),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
