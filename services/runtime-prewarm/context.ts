// Composition root: what routes and consumers get.

import { newId } from '../common/ids.ts';
import type { Logger } from '../common/logger.ts';
import { type BlobStore, createBlobStore } from '../common/nats/blobs.ts';
import { type Bus, openBus } from '../common/nats/bus.ts';
import { shortSocketPath } from '../common/proxy-socket.ts';
import { type Backends, openBackends } from './backends/backends.ts';
import { type RuntimePrewarmConfig, ratesOf } from './config.ts';
import * as events from './events.ts';
import { proxyAt } from './host/forward.ts';
import { type Host, openHost } from './host/host.ts';
import { RuntimeTable } from './runtimes/table.ts';

export type { Runtime } from './runtimes/runtime.ts';

const MIB = 1024 * 1024;

export interface RuntimePrewarmContext extends AsyncDisposable {
  readonly config: RuntimePrewarmConfig;
  readonly log: Logger;
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly host: Host;
  readonly backends: Backends;
  readonly runtimes: RuntimeTable;
  /** New at each start and after a fence: what was here before counts as lost. */
  bootId: string;
}

export async function createContext(
  config: RuntimePrewarmConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<RuntimePrewarmContext> {
  const { node, dataDir, proxySocket, mountRoots, path, defaultRuntime } = config;
  await using opened = new AsyncDisposableStack();
  const bus = await openBus({ url: config.natsUrl, name: `runtime-prewarm-${node.id}`, signal });
  opened.defer(() => bus.close());
  const dockerSocket = node.docker.socket;
  const host = await openHost({ dataDir, imagesDir: node.images_dir, mountRoots, path, dockerSocket });
  opened.use(host);
  events.hostOpened(log, host);
  const backends = await openBackends({
    ...{ host, dataDir, proxyUrl: node.public_url, defaultRuntime, docker: node.docker },
    proxy: proxyAt(shortSocketPath(proxySocket)),
    layers: { maxBytes: node.layers_max_mb * MIB, freeBytes: node.layers_free_mb * MIB },
    onChange: (state) => events.backendProbed(log, state),
  });
  opened.use(backends);
  for (const state of backends.states) events.backendProbed(log, state);
  const runtimes = new RuntimeTable({ backends, rates: ratesOf(node), log });
  opened.defer(() => runtimes.close());
  const all = opened.move();
  return {
    config,
    log,
    bus,
    blobs: createBlobStore(bus),
    host,
    backends,
    runtimes,
    bootId: newId('boot'),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
