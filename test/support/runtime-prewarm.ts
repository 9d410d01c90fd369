// A runtime-prewarm of one node for tests: real NATS, real sandboxes, own data folder.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { RuntimeSpecSchema } from '../../gen/ts/polar/common/v1/task_pb.js';
import { RuntimeService } from '../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { createServiceClient } from '../../services/common/client.ts';
import { type ExecInput, execCollected, type Runtimes } from '../../services/common/exec.ts';
import { createLogger } from '../../services/common/logger.ts';
import { createPort, type Handler } from '../../services/common/port.ts';
import { proxySocketOf } from '../../services/common/proxy-socket.ts';
import { readConfig } from '../../services/runtime-prewarm/config.ts';
import { findTool } from '../../services/runtime-prewarm/host/tools.ts';
import { RuntimePrewarmService } from '../../services/runtime-prewarm/service.ts';
import { programOf } from '../../tools/built.mjs';
import { COMPILED } from './compile-cache.ts';
import { eventually } from './eventually.ts';
import { freePort } from './nats.ts';

export { eventually } from './eventually.ts';

/** Bubblewrap does not come from a package registry: suites that need it are declared only where it is. */
export const bwrapIsThere = findTool('bwrap', process.env['PATH'] ?? '') !== undefined;
const NODE_ID = 'node-1';
const MAIN = programOf(join(import.meta.dirname, '../../services/runtime-prewarm/main.ts'));
export const isHostRoot = process.getuid?.() === 0;

export interface TestNode extends AsyncDisposable {
  readonly runtimes: Runtimes;
  readonly folder: string;
  readonly nodeId: string;
  /** Requests that came through to what stands for the LLM proxy. */
  readonly proxied: string[];
  /** Environment of a process with the same configuration. */
  readonly env: Record<string, string>;
  /** Port of the service, for a process with the same configuration. */
  readonly port: number;
  acquire(options?: AcquireTestOptions): Promise<string>;
  /** Run `sh -c`; output as text. */
  sh(runtimeId: string, script: string, options?: Partial<ExecInput>): Promise<ShellResult>;
}

interface AcquireTestOptions {
  readonly spec?: MessageInitShape<typeof RuntimeSpecSchema>;
  readonly session?: string;
  readonly ttlMs?: number;
  readonly forEvaluation?: boolean;
}

export type ShellResult = Awaited<ReturnType<typeof execCollected>>['result'] & { out: string; err: string };

export interface TestNodeOptions {
  readonly natsUrl: string;
  /** More keys of the node in the topology. */
  readonly node?: object;
  readonly path?: string;
  /** Socket of the LLM proxy that sandboxes are led to; false: to nothing; else to what only stands for one. */
  readonly proxy?: string | false;
  /** False: only the configuration is made. */
  readonly start?: boolean;
}

export async function startNode(options: TestNodeOptions): Promise<TestNode> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-prewarm-'));
  const proxied: string[] = [];
  const answer: RequestListener = (request, response) => {
    proxied.push(request.url ?? '');
    response.end('from the proxy');
  };
  // Sandboxes come by the socket, what is no sandbox by the port.
  const proxy = createServer(answer);
  const proxyInside = createPort(answer as Handler, { greeted: true });
  const socket = proxySocketOf(join(folder, 'data'), NODE_ID);
  mkdirSync(dirname(socket), { recursive: true });
  await proxyInside.listenAt(options.proxy === undefined ? socket : join(folder, 'nothing.sock'));
  if (typeof options.proxy === 'string') symlinkSync(options.proxy, socket);
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const port = await freePort();
  const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const env = writeTopology(folder, port, proxyUrl, options);
  const stop = new AbortController();
  const remove = (): void => {
    proxy.closeAllConnections();
    proxy.close();
    void proxyInside.close(0);
    rmSync(folder, { recursive: true, force: true });
  };
  const service = await startService(options, env, stop.signal).catch((error) => {
    remove();
    throw error;
  });
  const runtimes = createServiceClient(RuntimeService, `http://127.0.0.1:${port}`);
  return {
    ...{ runtimes, folder, nodeId: NODE_ID, proxied, env, port },
    acquire: (given) => acquireFrom(runtimes, given),
    sh: (runtimeId, script, more) => shellIn(runtimes, runtimeId, script, more),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await service?.[Symbol.asyncDispose]();
      remove();
    },
  };
}

/** The service as a process of its own, of a node that was not started. */
export function spawnManager({ env }: TestNode, uid?: number): ChildProcess {
  const user = uid === undefined ? {} : { uid, gid: uid };
  return spawn(process.execPath, [MAIN], { env, stdio: 'ignore', ...user });
}

/** Its guardian has cleared up then, so that nothing is made in its folders any more. */
export async function stopManager(manager: ChildProcess | undefined): Promise<void> {
  if (manager === undefined || manager.exitCode !== null || manager.signalCode !== null) return;
  manager.kill('SIGTERM');
  await once(manager, 'exit');
}

export async function managerIsReady({ port }: TestNode): Promise<void> {
  const answer = (): Promise<Response | undefined> =>
    fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
  await eventually('the manager is ready', async () => (await answer())?.ok === true);
}

function writeTopology(
  folder: string,
  port: number,
  proxyUrl: string,
  { natsUrl, node, path = process.env['PATH'] ?? '' }: TestNodeOptions,
): Record<string, string> {
  const file = join(folder, 'topology.yaml');
  const one = { id: NODE_ID, public_url: proxyUrl, runtime_prewarm_port: port, ...node };
  writeFileSync(file, JSON.stringify({ data_dir: join(folder, 'data'), gateway: { nodes: [one] } }));
  return { POLAR_TOPOLOGY: file, POLAR_NATS_URL: natsUrl, PATH: path, ...COMPILED };
}

/** A sandbox of a node that the caller has started. */
export async function acquireFrom(
  runtimes: Runtimes,
  { spec = {}, session = 's-1', ttlMs = 60_000, forEvaluation = false }: AcquireTestOptions = {},
): Promise<string> {
  const { runtime } = await runtimes.acquireRuntime({
    spec: create(RuntimeSpecSchema, spec),
    owner: { sessionId: session, attempt: 1, purpose: 'run' },
    ttl: durationFromMs(ttlMs),
    forEvaluation,
  });
  return runtime?.runtimeId ?? '';
}

export async function shellIn(
  runtimes: Runtimes,
  runtimeId: string,
  script: string,
  more: Partial<ExecInput> = {},
): Promise<ShellResult> {
  const input = { runtimeId, argv: ['sh', '-c', script], timeoutMs: 20_000, ...more };
  const { stdout, stderr, result } = await execCollected(runtimes, input, new AbortController().signal);
  return { ...result, out: Buffer.from(stdout).toString(), err: Buffer.from(stderr).toString() };
}

async function startService(
  { start = true }: TestNodeOptions,
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<RuntimePrewarmService | undefined> {
  if (!start) return undefined;
  return await RuntimePrewarmService.start(readConfig(env), createLogger('test', 'silent'), signal);
}

/** Processes of this machine, zombies left out, whose command line holds a text. */
export function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        if (!readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ').includes(text))
          return false;
        return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
      } catch {
        return false;
      }
    })
    .map(Number);
}
