// Sandboxes of a node without a mesh: its backends in this process, and what stands where the llm-proxy would.
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { RuntimeSpecSchema } from '../../../gen/ts/polar/common/v1/task_pb.js';
import { createLogger } from '../../../services/common/logger.ts';
import {
  type Backends,
  type BackendsOptions,
  openBackends,
} from '../../../services/runtime-prewarm/backends/backends.ts';
import type { ProxyConnect } from '../../../services/runtime-prewarm/host/forward.ts';
import { openHost } from '../../../services/runtime-prewarm/host/host.ts';
import { NodeGpus } from '../../../services/runtime-prewarm/runtimes/gpus.ts';
import { RuntimeTable } from '../../../services/runtime-prewarm/runtimes/table.ts';

export interface BareNode extends AsyncDisposable {
  readonly backends: Backends;
  readonly runtimes: RuntimeTable;
  /** Of its data. */
  readonly folder: string;
}

export interface BareNodeOptions {
  /** What sandboxes reach as their LLM proxy. */
  readonly engineUrl: string;
  /** Of container engines, as a node's topology names them. */
  readonly engines?: Partial<Pick<BackendsOptions, 'docker' | 'podman'>>;
}

const NEVER = { socket: '/run/no-container-engine.sock', pull: 'never', map_users: false } as const;
const LAYERS = { maxBytes: 1 << 30, freeBytes: 0 };
const LEASE_MS = 600_000;

export async function openBareNode({ engineUrl, engines = {} }: BareNodeOptions): Promise<BareNode> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-bench-node-'));
  await using opened = new AsyncDisposableStack();
  opened.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const [dataDir, imagesDir] = [join(folder, 'data'), join(folder, 'images')];
  for (const path of [dataDir, imagesDir]) mkdirSync(path);
  const path = process.env['PATH'] ?? '';
  const { docker = NEVER, podman = NEVER } = engines;
  const engineSockets = [docker.socket, podman.socket];
  const host = opened.use(await openHost({ dataDir, imagesDir, mountRoots: [], path, engineSockets }));
  const backends = opened.use(
    await openBackends({
      ...{ host, dataDir, proxyUrl: engineUrl, defaultRuntime: undefined, layers: LAYERS },
      proxy: straightTo(engineUrl),
      docker,
      podman,
      plugins: { dir: undefined, paths: [] },
      marks: { highPercent: 100, lowPercent: 100, keepMs: 0 },
      sweepEvents: { removed() {}, short() {} },
      onStuck: () => {},
      onNothingLeft: () => {},
      onChange: () => {},
    }),
  );
  const gpus = new NodeGpus({
    ...{
      file: join(dataDir, 'gpus.json'),
      all: { gpus: [], common: [], asFiles: false },
      shared: false,
      outliving: [],
    },
  });
  const runtimes = new RuntimeTable({
    backends,
    gpus,
    rates: new Map(),
    log: createLogger('bench', 'silent'),
  });
  opened.defer(() => runtimes.close());
  const all = opened.move();
  return { backends, runtimes, folder: dataDir, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

const straightTo =
  (url: string): ProxyConnect =>
  async () => {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
    await once(socket, 'connect');
    return socket;
  };

/** What AcquireRuntime is asked for. */
export const orderOf = (init: MessageInitShape<typeof RuntimeSpecSchema>, sessionId: string) => ({
  spec: create(RuntimeSpecSchema, init),
  owner: { sessionId, attempt: 1, purpose: 'run' },
  leaseMs: LEASE_MS,
  timeoutMs: LEASE_MS,
  forEvaluation: false,
});
