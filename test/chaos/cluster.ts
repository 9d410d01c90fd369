// Three nodes of four services each, two schedulers, a reconstructor, nats-server and an engine: all processes of their
// own, all but the engine kept running whatever becomes of them.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { stringify } from 'yaml';
import { mainOf, NODE_SERVICES, nodeFlagsOf, ROOT, type ServiceName } from '../../clients/cli/services.ts';
import { sha256 } from '../../services/common/ids.ts';
import { eventually } from '../support/eventually.ts';
import { startEngine } from '../support/mesh.ts';
import { freePort, startNats, type TestNats } from '../support/nats.ts';
import type { ClusterEngine } from './engines.ts';
import { Kept } from './kept.ts';

const cacheDir = process.env['POLAR_CACHE_DIR'] ?? join(ROOT, '.cache');

/** So many processes at once, on a machine that does other things. */
const READY_MS = 90_000;

export interface ClusterOptions {
  readonly nodes?: number;
  readonly runSlots: number;
  /** Of the scripted engine. */
  readonly engineFlags?: readonly string[];
  /** Of all nodes. */
  readonly engines?: readonly ClusterEngine[];
}

export interface ClusterNode {
  readonly id: string;
  readonly dataDir: string;
  /** What its sandboxes are named by outside of that folder. */
  readonly instance: string;
  readonly services: Readonly<Record<string, Kept>>;
  readonly runtimesUrl: string;
  readonly topology: object;
}

export interface Cluster extends AsyncDisposable {
  readonly folder: string;
  /** Where every process of it is told to put temporary files. */
  readonly tmp: string;
  readonly nodes: readonly ClusterNode[];
  readonly schedulers: readonly Kept[];
  readonly reconstructor: Kept;
  readonly nats: TestNats;
  readonly engines: readonly ClusterEngine[];
  /** Both, comma separated. */
  readonly schedulerUrls: string;
  readonly reconstructorUrl: string;
  log(name: string): string;
  /** Ask everything to end, and wait for it. The folder stays. */
  stop(): Promise<void>;
}

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-chaos-'));
  const tmp = join(folder, 'tmp');
  mkdirSync(tmp);
  const nats = await startNats();
  const engines = new Map<string, ChildProcess>();
  const engineUrl = await startEngine(folder, options, engines);
  const launch = launcher(folder, tmp);
  const ports = { schedulers: [await freePort(), await freePort()], reconstructor: await freePort() };
  const ids = Array.from({ length: options.nodes ?? 3 }, (_, i) => `node-${i + 1}`);
  const nodes = await Promise.all(ids.map((id) => nodeOf({ id, folder, launch, engineUrl, options })));
  const file = {
    data_dir: join(folder, 'data'),
    nats: { url: nats.url },
    rollout: { host: '127.0.0.1', port: ports.schedulers[0] },
    reconstructor: { host: '127.0.0.1', port: ports.reconstructor },
    gateway: { nodes: nodes.map(({ topology }) => topology) },
  };
  writeFileSync(join(folder, 'topology.yaml'), stringify(file));
  const schedulers = ports.schedulers.map((port, i) =>
    launch('scheduler', `scheduler-${i + 1}`, { POLAR_ROLLOUT_PORT: String(port) }),
  );
  const reconstructor = launch('reconstructor', 'reconstructor', {});
  const kept = [...nodes.flatMap(({ services }) => Object.values(services)), ...schedulers, reconstructor];
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    await Promise.all(kept.map((one) => one.stop()));
    for (const engine of engines.values()) engine.kill('SIGTERM');
    await nats[Symbol.asyncDispose]();
  };
  const cluster: Cluster = {
    ...{ folder, tmp, nodes, schedulers, reconstructor, nats, engines: options.engines ?? [] },
    schedulerUrls: ports.schedulers.map((port) => `http://127.0.0.1:${port}`).join(','),
    reconstructorUrl: `http://127.0.0.1:${ports.reconstructor}`,
    log: (name) => readFileSync(join(folder, `${name}.log`), 'utf8'),
    stop: () => (stopped ??= stop()),
    async [Symbol.asyncDispose]() {
      await cluster.stop();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  for (const one of kept) one.start();
  try {
    await Promise.all(
      [...nodes.map(({ runtimesUrl }) => runtimesUrl), cluster.reconstructorUrl].map(isReady),
    );
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

type Launch = (service: ServiceName, name: string, env: Readonly<Record<string, string>>) => Kept;

function launcher(folder: string, tmp: string): Launch {
  return (service, name, env) =>
    new Kept(name, () => {
      const log = openSync(join(folder, `${name}.log`), 'a');
      const child = spawn(process.execPath, [...nodeFlagsOf(service), mainOf(service)], {
        stdio: ['pipe', log, log],
        env: {
          PATH: process.env['PATH'],
          HOME: process.env['HOME'],
          TMPDIR: tmp,
          POLAR_TOPOLOGY: join(folder, 'topology.yaml'),
          POLAR_LIFELINE: 'stdin',
          NODE_COMPILE_CACHE: join(cacheDir, 'compiled'),
          ...env,
        },
      });
      closeSync(log);
      child.stdin?.on('error', () => {});
      return child;
    });
}

interface NodeParts {
  readonly id: string;
  readonly folder: string;
  readonly launch: Launch;
  readonly engineUrl: string;
  readonly options: ClusterOptions;
}

async function nodeOf({ id, folder, launch, engineUrl, options }: NodeParts): Promise<ClusterNode> {
  const dataDir = join(folder, 'data/nodes', id);
  const ports = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
  const [port, runtimesPort, executorPort, evaluatorPort] = ports;
  const env = { POLAR_GATEWAY_NODE_ID: id };
  const services = NODE_SERVICES.map((name) => [name, launch(name, `${name}-${id}`, env)] as const);
  return {
    id,
    dataDir,
    instance: `polar-${sha256(dataDir).slice(0, 12)}`,
    services: Object.fromEntries(services),
    runtimesUrl: `http://127.0.0.1:${runtimesPort}`,
    topology: {
      id,
      host: '127.0.0.1',
      port,
      runtime_prewarm_port: runtimesPort,
      harness_executor_port: executorPort,
      evaluator_port: evaluatorPort,
      inference: { engine: 'sglang', base_url: engineUrl },
      max_init_workers: options.runSlots,
      max_run_workers: options.runSlots,
      max_postrun_workers: options.runSlots,
      cache_dir: cacheDir,
      ...Object.assign({}, ...(options.engines ?? []).map(({ node }) => node)),
    },
  };
}

const isReady = (url: string): Promise<void> =>
  eventually(
    `${url} is ready`,
    () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    READY_MS,
  );
