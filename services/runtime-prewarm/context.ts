// Composition root: what routes and consumers get.
import { existsSync, readFileSync, renameSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from '../common/ids.ts';
import { RUNTIMES_MAX } from '../common/limits.ts';
import type { Logger } from '../common/logger.ts';
import { type BlobStore, createBlobStore } from '../common/nats/blobs.ts';
import { type Bus, openBus } from '../common/nats/bus.ts';
import { shortSocketPath } from '../common/proxy-socket.ts';
import { type Backends, openBackends } from './backends/backends.ts';
import { marksOf, type RuntimePrewarmConfig, ratesOf } from './config.ts';
import { type FenceState, UNSEEN } from './domain/fence.ts';
import * as events from './events.ts';
import { proxyAt } from './host/forward.ts';
import { gpusOf } from './host/gpus.ts';
import { type Host, openHost } from './host/host.ts';
import { showGpus, showSandboxes } from './metrics.ts';
import { Ahead } from './runtimes/ahead.ts';
import { NodeGpus } from './runtimes/gpus.ts';
import { SharedSpecs } from './runtimes/shared-specs.ts';
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
  readonly gpus: NodeGpus;
  readonly runtimes: RuntimeTable;
  readonly specs: SharedSpecs;
  /** Sandboxes of evaluations to come. */
  readonly ahead: Ahead;
  /** New at each start and after a fence: what was here before counts as lost. */
  bootId: string;
  /** Of the folder of the node's data, which no other process holds. */
  readonly dataId: string;
  /** What a scheduler knows of this boot. */
  fence: FenceState;
}

export async function createContext(
  config: RuntimePrewarmConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<RuntimePrewarmContext> {
  const { node, dataDir, proxySocket, mountRoots, path, defaultRuntime } = config;
  await using opened = new AsyncDisposableStack();
  const bus = await openBus({ ...config.nats, name: `runtime-prewarm-${node.id}`, signal, log });
  opened.defer(() => bus.close());
  const engineSockets = [node.docker.socket, node.podman.socket];
  const host = await openHost({ dataDir, imagesDir: node.images_dir, mountRoots, path, engineSockets });
  opened.use(host);
  events.hostOpened(log, host);
  const dataId = dataIdIn(dataDir);
  const gpus = new NodeGpus({
    ...{ file: join(dataDir, 'gpus.json'), all: gpusOf(node.gpus), shared: node.gpus.shared },
    outliving: ['docker', 'podman'],
  });
  const backends = await openBackends({
    ...{ host, dataDir, proxyUrl: proxyUrlOf(config), defaultRuntime },
    ...{ docker: node.docker, podman: node.podman },
    plugins: { dir: node.plugins_dir, paths: node.backend_plugins },
    proxy: proxyAt(shortSocketPath(proxySocket)),
    layers: { maxBytes: node.layers_max_mb * MIB, freeBytes: node.layers_free_mb * MIB },
    marks: marksOf(node),
    sweepEvents: events.sweepEvents(log),
    onNothingLeft: (name) => gpus.nothingLeft(name),
    onStuck: (what, id, error) => events.leftStuck(log, what, id, error),
    onChange: (state) => events.backendProbed(log, state),
  });
  opened.use(backends);
  for (const state of backends.states) events.backendProbed(log, state);
  const runtimes = new RuntimeTable({ backends, gpus, rates: ratesOf(node), log });
  opened.defer(() => runtimes.close());
  opened.use(showSandboxes(runtimes));
  opened.use(showGpus(gpus));
  const ahead = new Ahead({
    ...{ runtimes, log, max: node.max_postrun_ready },
    hasRoom: () => runtimes.size < RUNTIMES_MAX / 2 && freeBytes(dataDir) >= node.layers_free_mb * MIB,
  });
  const all = opened.move();
  return {
    config,
    log,
    bus,
    blobs: createBlobStore(bus),
    host,
    backends,
    gpus,
    runtimes,
    specs: new SharedSpecs(),
    ahead,
    bootId: newId('boot'),
    dataId,
    fence: UNSEEN,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** For harnesses of runtime process, which have the network of this machine and know no certificates. */
const proxyUrlOf = ({ tls, node }: RuntimePrewarmConfig): string =>
  tls === undefined ? node.public_url : `http://127.0.0.1:${node.harness_port}`;

/** Made by who has the folder first. */
function dataIdIn(folder: string): string {
  const file = join(folder, 'data-id');
  const found = existsSync(file) ? readFileSync(file, 'utf8') : '';
  // On a full disk there may be a file and nothing in it.
  if (found !== '') return found;
  const made = newId('data');
  writeFileSync(`${file}.part`, made);
  renameSync(`${file}.part`, file);
  return made;
}

/** 0 where nobody can tell. */
function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
