// A whole mesh for a test or a benchmark: nats-server, six service processes and the scripted engine, each of which can
// be killed and started again. Everything lies in one temporary folder and ends with `await using`.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { mainOf, nodeFlagsOf, SERVICES, type ServiceName } from '../../clients/cli/services.ts';
import { sleep } from '../../services/common/clock.ts';
import { programOf } from '../../tools/built.mjs';
import { clockFlags } from './clock-flags.ts';
import { COMPILED } from './compile-cache.ts';
import { freePort, startNats, type TestNats } from './nats.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const READY_MS = 60_000;
const READY_LOOK_MS = 50;

export interface MeshOptions {
  readonly runSlots?: number;
  readonly prepareSlots?: number;
  readonly evaluateSlots?: number;
  readonly engine?: 'sglang' | 'vllm';
  /** Flags of the scripted engine. */
  readonly engineFlags?: readonly string[];
  /** Engine to use instead of the scripted one. */
  readonly engineUrl?: string;
  readonly defaultBackend?: 'bubblewrap' | 'process';
  /** More keys of the node's `inference`. */
  readonly inference?: object;
  /** More keys of the node in the topology. */
  readonly node?: object;
  /** Of the topology. */
  readonly evaluators?: object;
  /** In place of a folder of the mesh's own. */
  readonly dataDir?: string;
  /** More flags of Node.js for the services. */
  readonly nodeFlags?: readonly string[];
  /** More lines of nats-server's configuration. */
  readonly natsConfig?: string;
  /** Of JetStream's files. */
  readonly natsStoreDir?: string;
  /** Access tokens, and the one that the services have. */
  readonly access?: { readonly tokensFile: string; readonly token: string };
  /** Search path of the services; default this process's. */
  readonly path?: string;
  /** How far the clock of the node's services is ahead. */
  readonly nodeClockAheadMs?: number;
}

export interface Mesh extends AsyncDisposable {
  readonly folder: string;
  readonly topologyFile: string;
  readonly schedulerUrl: string;
  readonly reconstructorUrl: string;
  readonly proxyUrl: string;
  readonly harnessUrl: string;
  /** Of the node's data. */
  readonly nodeFolder: string;
  readonly nats: TestNats;
  readonly engineUrl: string;
  readonly pids: ReadonlyMap<string, number>;
  /** From spawning the services to the last /readyz. */
  readonly servicesReadyMs: number;
  /** SIGKILL, and wait until it is gone. */
  kill(name: ServiceName): Promise<void>;
  /** Start again; resolves when /readyz answers. */
  start(name: ServiceName): Promise<void>;
  /** Log of a service so far. */
  log(name: ServiceName | 'engine'): string;
}

export async function startMesh(options: MeshOptions = {}): Promise<Mesh> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-mesh-'));
  const nats = await startNats(options.natsConfig, options.natsStoreDir);
  const children = new Map<string, ChildProcess>();
  const ports = await portsFor(SERVICES);
  try {
    const engineUrl = options.engineUrl ?? (await startEngine(folder, options, children));
    const topologyFile = join(folder, 'topology.yaml');
    writeFileSync(topologyFile, stringify(topologyOf(options, ports, engineUrl, nats.url, folder)));
    const launch = (name: ServiceName): Promise<void> =>
      startService(name, {
        ...{ folder, topologyFile, ports, children },
        ...{ flags: flagsOf(name, options), token: options.access?.token, path: options.path },
      });
    const started = performance.now();
    await Promise.all(SERVICES.map(launch));
    const servicesReadyMs = performance.now() - started;
    return {
      folder,
      topologyFile,
      nats,
      engineUrl,
      servicesReadyMs,
      schedulerUrl: `http://127.0.0.1:${ports.scheduler}`,
      reconstructorUrl: `http://127.0.0.1:${ports.reconstructor}`,
      proxyUrl: `http://127.0.0.1:${ports['llm-proxy']}`,
      harnessUrl: `http://127.0.0.1:${ports['harness-executor']}`,
      nodeFolder: join(options.dataDir ?? join(folder, 'data'), 'nodes/node-1'),
      get pids() {
        return new Map([...children].map(([name, child]) => [name, child.pid ?? 0]));
      },
      kill: (name) => end(children.get(name), 'SIGKILL'),
      start: launch,
      log: (name) => readFileSync(join(folder, `${name}.log`), 'utf8'),
      [Symbol.asyncDispose]: () => stopAll(children, nats, folder),
    };
  } catch (error) {
    const logs = [...children.keys()]
      .map((name) => `--- ${name}\n${tail(join(folder, `${name}.log`))}`)
      .join('\n');
    await stopAll(children, nats, folder);
    throw new Error(`the mesh did not start: ${(error as Error).message}\n${logs}`, { cause: error });
  }
}

type Ports = Record<ServiceName, number>;

async function portsFor(names: readonly ServiceName[]): Promise<Ports> {
  const entries = await Promise.all(names.map(async (name) => [name, await freePort()] as const));
  return Object.fromEntries(entries) as Ports;
}

function topologyOf(
  options: MeshOptions,
  ports: Ports,
  engineUrl: string,
  natsUrl: string,
  folder: string,
): object {
  return {
    data_dir: options.dataDir ?? join(folder, 'data'),
    nats: { url: natsUrl },
    ...(options.access && { access: { tokens_file: options.access.tokensFile } }),
    ...(options.evaluators && { evaluators: options.evaluators }),
    rollout: { host: '127.0.0.1', port: ports.scheduler },
    reconstructor: { host: '127.0.0.1', port: ports.reconstructor },
    gateway: {
      nodes: [
        {
          id: 'node-1',
          host: '127.0.0.1',
          port: ports['llm-proxy'],
          runtime_prewarm_port: ports['runtime-prewarm'],
          harness_executor_port: ports['harness-executor'],
          evaluator_port: ports.evaluator,
          inference: { engine: options.engine ?? 'sglang', base_url: engineUrl, ...options.inference },
          max_init_workers: options.prepareSlots ?? 4,
          max_run_workers: options.runSlots ?? 4,
          max_postrun_workers: options.evaluateSlots ?? 4,
          cache_dir: process.env['POLAR_CACHE_DIR'] ?? join(ROOT, '.cache'),
          ...(options.defaultBackend && { default_runtime: { backend: options.defaultBackend } }),
          ...options.node,
        },
      ],
    },
  };
}

export async function startEngine(
  folder: string,
  options: Pick<MeshOptions, 'engine' | 'engineFlags'>,
  children: Map<string, ChildProcess>,
): Promise<string> {
  const main = programOf(join(ROOT, 'examples/scripted-engine/main.ts'));
  const flags = [
    '--port',
    '0',
    '--lifeline',
    '--dialect',
    options.engine ?? 'sglang',
    ...(options.engineFlags ?? []),
  ];
  const child = spawn(process.execPath, [main, ...flags], { stdio: ['pipe', 'pipe', 'pipe'] });
  children.set('engine', child);
  child.stderr.pipe(createWriteStream(join(folder, 'engine.log')));
  let text = '';
  for await (const chunk of child.stdout) {
    text += chunk;
    const line = text.split('\n').find((one) => one.startsWith('{') && one.endsWith('}'));
    if (line === undefined) continue;
    child.stdout.resume();
    return (JSON.parse(line) as { url: string }).url;
  }
  throw new Error('the scripted engine ended before it listened');
}

interface Launch {
  readonly folder: string;
  readonly topologyFile: string;
  readonly ports: Ports;
  readonly children: Map<string, ChildProcess>;
  /** Of Node.js. */
  readonly flags: readonly string[];
  readonly token: string | undefined;
  readonly path: string | undefined;
}

const flagsOf = (name: ServiceName, options: MeshOptions): string[] => [
  ...(options.nodeFlags ?? []),
  ...nodeClockFlags(name, options),
];

const CENTRAL: readonly ServiceName[] = ['scheduler', 'reconstructor'];

/** What a service of the node reads as the time of day is that much later; timers are as they were. */
function nodeClockFlags(name: ServiceName, { nodeClockAheadMs = 0 }: MeshOptions): string[] {
  return nodeClockAheadMs === 0 || CENTRAL.includes(name) ? [] : clockFlags(nodeClockAheadMs);
}

async function startService(
  name: ServiceName,
  { folder, topologyFile, ports, children, flags, token, path = process.env['PATH'] }: Launch,
): Promise<void> {
  const main = mainOf(name);
  const child = spawn(process.execPath, [...nodeFlagsOf(name), ...flags, main], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH: path,
      HOME: process.env['HOME'],
      // Registries, from which harnesses are installed, are trusted as on this machine.
      NODE_EXTRA_CA_CERTS: process.env['NODE_EXTRA_CA_CERTS'],
      SSL_CERT_FILE: process.env['SSL_CERT_FILE'],
      POLAR_TOPOLOGY: topologyFile,
      POLAR_LIFELINE: 'stdin',
      ...(token !== undefined && { POLAR_TOKEN: token }),
      ...COMPILED,
    },
  });
  children.set(name, child);
  const log = createWriteStream(join(folder, `${name}.log`), { flags: 'a' });
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  const until = performance.now() + READY_MS;
  while (performance.now() < until) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`);
    const ready = await fetch(`http://127.0.0.1:${ports[name]}/readyz`, {
      signal: AbortSignal.timeout(1_000),
    })
      .then((response) => response.ok)
      .catch(() => false);
    if (ready) return;
    await sleep(READY_LOOK_MS);
  }
  throw new Error(`${name} was not ready within ${READY_MS} ms`);
}

async function end(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

async function stopAll(children: Map<string, ChildProcess>, nats: TestNats, folder: string): Promise<void> {
  await Promise.all([...children.values()].map((child) => end(child, 'SIGTERM')));
  await nats[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

function tail(file: string): string {
  try {
    return readFileSync(file, 'utf8').slice(-2_000);
  } catch {
    return '(no log)';
  }
}
