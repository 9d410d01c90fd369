// One node for a test: nats-server, runtime-prewarm and, where asked for, the harness executor and the evaluator as
// processes of their own, with work published by hand and facts read back.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { stringify } from 'yaml';
import type { RuntimeSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import {
  type AttemptRef,
  AttemptRefSchema,
  type Fact,
  FactSchema,
  WorkSchema,
} from '../../gen/ts/polar/event/v1/work_pb.js';
import {
  type Runtime,
  RuntimeService,
} from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import type { Runtimes } from '../../services/common/exec.ts';
import { createLogger } from '../../services/common/logger.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { type Bus, openBus } from '../../services/common/nats/bus.ts';
import { consume } from '../../services/common/nats/consume.ts';
import { publish } from '../../services/common/nats/publish.ts';
import { CONSUMERS, STREAMS } from '../../services/common/nats/streams.ts';
import { subjects, type WorkKind } from '../../services/common/nats/subjects.ts';
import { proxySocketOf } from '../../services/common/proxy-socket.ts';
import { programOf } from '../../tools/built.mjs';
import { COMPILED } from './compile-cache.ts';
import { freePort, startNats, type TestNats } from './nats.ts';

export type NodeService = 'runtime-prewarm' | 'harness-executor' | 'evaluator';
export type WorkCase = NonNullable<MessageInitShape<typeof WorkSchema>['kind']>;
export type RuntimeInit = MessageInitShape<typeof RuntimeSpecSchema>;

const ROOT = join(import.meta.dirname, '..', '..');
const READY_MS = 60_000;
const READY_LOOK_MS = 50;
const FACT_MS = 45_000;

export interface TestNode extends AsyncDisposable {
  readonly nats: TestNats;
  readonly bus: Bus;
  readonly runtimes: Runtimes;
  readonly ports: Readonly<Record<NodeService | 'llm-proxy', number>>;
  /** Where sandboxes are led to. */
  readonly proxySocket: string;
  /** All facts so far, in order. */
  readonly facts: readonly Fact[];
  /** bubblewrap where it works here, else process. */
  readonly backend: string;
  start(service: NodeService): Promise<void>;
  end(service: NodeService, signal: NodeJS.Signals): Promise<void>;
  log(service: NodeService): string;
  /** A leased sandbox for the run of an attempt. */
  acquire(ref: AttemptRef, spec?: RuntimeInit): Promise<string>;
  work(ref: AttemptRef, kind: WorkCase, msgId?: string): Promise<void>;
  /** The first fact of an attempt that ends a stage. */
  fact(ref: AttemptRef): Promise<Fact>;
}

const NODE_ID = 'node-1';
let sessions = 0;

/** A new attempt of a new session. */
export const newRef = (attempt = 1): AttemptRef =>
  create(AttemptRefSchema, {
    sessionId: `s${++sessions}-0`,
    attempt,
    nodeId: NODE_ID,
    bootId: 'boot',
    taskId: `task.${sessions}`,
  });

interface MoreOfNode {
  /** Keys of the topology beside its node. */
  readonly topology?: object;
  /** Environment of the services. */
  readonly env?: Readonly<Record<string, string>>;
}

/** `more`: keys of the node in the topology. */
export async function startNode(
  services: readonly NodeService[],
  more: object = {},
  { topology = {}, env = {} }: MoreOfNode = {},
): Promise<TestNode> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-node-'));
  const stop = new AbortController();
  const stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  try {
    const nats = stack.use(await startNats());
    const ports = {
      'llm-proxy': await freePort(),
      'runtime-prewarm': await freePort(),
      'harness-executor': await freePort(),
      evaluator: await freePort(),
    };
    writeFileSync(
      join(folder, 'topology.yaml'),
      stringify({ ...topologyOf(folder, nats.url, ports, more), ...topology }),
    );
    const bus = await openBus({ url: nats.url, name: 'test' });
    stack.defer(() => bus.close());
    const facts: Fact[] = [];
    const reading = readFacts(bus, facts, stop.signal);
    stack.defer(async () => {
      stop.abort();
      await reading;
    });
    const children = new Map<NodeService, ChildProcess>();
    stack.defer(async () => {
      await Promise.all([...children.values()].map((child) => ended(child, 'SIGTERM')));
    });
    const start = (service: NodeService): Promise<void> =>
      startChild(service, folder, ports[service], children, env);
    await Promise.all(services.map(start));
    const runtimes = createServiceClient(RuntimeService, `http://127.0.0.1:${ports['runtime-prewarm']}`);
    const backend = await backendOf(runtimes);
    const owned = stack.move();
    const proxyUrls = new Map<string, string>();
    return {
      nats,
      bus,
      runtimes,
      ports,
      proxySocket: proxySocketOf(join(folder, 'data'), NODE_ID),
      facts,
      backend,
      start,
      end: (service, signal) => ended(children.get(service), signal),
      log: (service) => readFileSync(join(folder, `${service}.log`), 'utf8'),
      async acquire(ref, spec = {}) {
        const runtime = await acquire(runtimes, ref, { backend, ...spec });
        proxyUrls.set(runtime.runtimeId, runtime.proxyUrl);
        return runtime.runtimeId;
      },
      work(ref, kind, msgId) {
        // What a scheduler knows of the sandbox by the fact that it is ready.
        if (kind?.case === 'run') kind.value.proxyUrl ||= proxyUrls.get(kind.value.runtimeId ?? '') ?? '';
        return publishWork(bus, ref, kind, msgId);
      },
      fact: (ref) => firstFact(facts, ref),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

function topologyOf(folder: string, natsUrl: string, ports: TestNode['ports'], more: object): object {
  const node = {
    id: NODE_ID,
    host: '127.0.0.1',
    port: ports['llm-proxy'],
    runtime_prewarm_port: ports['runtime-prewarm'],
    harness_executor_port: ports['harness-executor'],
    evaluator_port: ports.evaluator,
    max_run_workers: 4,
    cache_dir: process.env['POLAR_CACHE_DIR'] ?? join(ROOT, '.cache'),
    ...more,
  };
  return { data_dir: join(folder, 'data'), nats: { url: natsUrl }, gateway: { nodes: [node] } };
}

async function startChild(
  service: NodeService,
  folder: string,
  port: number,
  children: Map<NodeService, ChildProcess>,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const child = spawn(process.execPath, [programOf(join(ROOT, 'services', service, 'main.ts'))], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      POLAR_TOPOLOGY: join(folder, 'topology.yaml'),
      POLAR_LIFELINE: 'stdin',
      ...COMPILED,
      ...env,
    },
  });
  children.set(service, child);
  const log = createWriteStream(join(folder, `${service}.log`), { flags: 'a' });
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  const until = performance.now() + READY_MS;
  while (performance.now() < until && child.exitCode === null) {
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`).then(
      (response) => response.ok,
      () => false,
    );
    if (ready) return;
    await sleep(READY_LOOK_MS);
  }
  throw new Error(`${service} did not start:\n${readFileSync(join(folder, `${service}.log`), 'utf8')}`);
}

async function ended(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

async function backendOf(runtimes: Runtimes): Promise<string> {
  const { backends } = await runtimes.listRuntimes({});
  const usable = backends.filter(({ unavailable }) => unavailable === undefined);
  return usable.find(({ isolates }) => isolates)?.name ?? 'process';
}

async function acquire(runtimes: Runtimes, ref: AttemptRef, spec: RuntimeInit): Promise<Runtime> {
  const { sessionId, attempt } = ref;
  const owner = { sessionId, attempt, purpose: 'run' };
  const { runtime } = await runtimes.acquireRuntime({ spec, owner, ttl: { seconds: 600n } });
  if (runtime === undefined) throw new Error('no sandbox');
  return runtime;
}

async function publishWork(bus: Bus, ref: AttemptRef, kind: WorkCase, msgId?: string): Promise<void> {
  const work = create(WorkSchema, { ref, kind });
  const subject = subjects.work(work.kind.case as WorkKind, ref.nodeId);
  const id = msgId ?? `${ref.sessionId}:${ref.attempt}:${work.kind.case}`;
  await publish(bus, createBlobStore(bus), subject, toBinary(WorkSchema, work), { msgId: id });
}

async function readFacts(bus: Bus, facts: Fact[], signal: AbortSignal): Promise<void> {
  await consume({
    bus,
    blobs: createBlobStore(bus),
    log: createLogger('test', 'silent'),
    stream: STREAMS.facts.name,
    consumer: CONSUMERS.schedulerFacts,
    concurrency: 16,
    signal,
    handle: async ({ bytes }) => {
      facts.push(fromBinary(FactSchema, bytes));
    },
  });
}

async function firstFact(facts: readonly Fact[], { sessionId, attempt }: AttemptRef): Promise<Fact> {
  const until = performance.now() + FACT_MS;
  while (performance.now() < until) {
    const found = facts.find(
      ({ ref, kind }) =>
        ref?.sessionId === sessionId && ref.attempt === attempt && !/^install/.test(kind.case ?? ''),
    );
    if (found !== undefined) return found;
    await sleep(10);
  }
  throw new Error(`no fact of ${sessionId} within ${FACT_MS} ms`);
}
