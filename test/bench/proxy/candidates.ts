// What is compared: each as a process on a core of its own, in front of the same engine.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import process from 'node:process';
import { nodeFlagsOf } from '../../../clients/cli/services.ts';
import { TestProxy } from '../../support/llm-proxy.ts';
import { freePort } from '../../support/nats.ts';
import { binOf } from './install.ts';

/** The core of what is measured; engine, load and nats-server have the other one. */
const CORE = 0;
export const OTHER_CORE = 1;
const pinned = ['taskset', '-c', String(CORE)];
const READY_MS = 300_000;
const CHAT = '/v1/chat/completions';
const NO_KEY = 'none';
/** Set: a CPU profile of our proxy is written there. */
const PROFILES = process.env['BENCH_PROFILE'];

export interface Candidate extends AsyncDisposable {
  readonly port: number;
  /** Of the process whose cost counts; unset: nothing stands between. */
  readonly pid: number | undefined;
  /** Paths that calls of so many sessions go to. */
  paths(sessions: number): Promise<readonly string[]>;
  /** No more calls come of those that there are. */
  closeSessions(): Promise<void>;
  /** The key that calls are sent with. */
  readonly key: string;
}

export type CandidateName = 'direct' | 'node-http' | 'vllm-router' | 'fastapi-httpx' | 'litellm' | 'polar';
type Start = (enginePort: number) => Promise<Candidate>;

const direct: Start = async (port) => ({
  port,
  pid: undefined,
  key: NO_KEY,
  paths: async () => [CHAT],
  closeSessions: async () => {},
  [Symbol.asyncDispose]: async () => {},
});

interface Command {
  readonly command: readonly string[];
  readonly ready: string;
  readonly env?: Record<string, string>;
  readonly folder?: string;
  readonly key?: string;
}

/** A peer: started, waited for until it answers `ready`, stopped with its folder. */
async function peer(
  port: number,
  { command, ready, env, folder, key = NO_KEY }: Command,
): Promise<Candidate> {
  // It ends with this process, even where that is killed.
  const args = ['--pdeathsig', 'KILL', ...pinned, ...command];
  const child = spawn('setpriv', args, { env: { ...process.env, ...env }, stdio: 'ignore', detached: true });
  const stop = async (): Promise<void> => {
    await ended(child);
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  };
  try {
    await answers(`http://127.0.0.1:${port}${ready}`, child);
  } catch (error) {
    await stop();
    throw error;
  }
  const closeSessions = async (): Promise<void> => {};
  return { port, pid: child.pid, key, paths: async () => [CHAT], closeSessions, [Symbol.asyncDispose]: stop };
}

async function answers(url: string, child: ChildProcess): Promise<void> {
  const until = performance.now() + READY_MS;
  while (performance.now() < until && child.exitCode === null) {
    const status = await fetch(url).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${child.spawnargs.slice(3 + pinned.length).join(' ')} did not answer ${url}`);
}

/** The process group, as some start children of their own. */
async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const exited = once(child, 'exit');
  process.kill(-child.pid, 'SIGKILL');
  await exited;
}

const here = (file: string): string => join(import.meta.dirname, 'peers', file);

const nodeHttp: Start = async (enginePort) => {
  const port = await freePort();
  const command = [process.execPath, here('pass-through.ts'), String(port), String(enginePort)];
  return await peer(port, { command, ready: '/v1/models' });
};

const vllmRouter: Start = async (enginePort) => {
  const [port, metrics] = [await freePort(), await freePort()];
  const worker = ['--worker-urls', `http://127.0.0.1:${enginePort}`, '--policy', 'round_robin'];
  const own = ['--host', '127.0.0.1', '--port', String(port), '--prometheus-port', String(metrics)];
  const limits = ['--max-concurrent-requests', '4096', '--log-level', 'error'];
  const command = [binOf('peers', 'vllm-router'), ...worker, ...own, ...limits];
  return await peer(port, { command, ready: '/health' });
};

const FASTAPI = 'fastapi_proxy.py';

const fastapi: Start = async (enginePort) => {
  const port = await freePort();
  const own = ['--app-dir', here(''), '--host', '127.0.0.1', '--port', String(port), '--workers', '1'];
  const fast = ['--loop', 'uvloop', '--http', 'httptools', '--log-level', 'error', '--no-access-log'];
  const command = [binOf('peers', 'uvicorn'), `${basename(FASTAPI, '.py')}:app`, ...own, ...fast];
  return await peer(port, {
    command,
    ready: '/health',
    env: { ENGINE_URL: `http://127.0.0.1:${enginePort}` },
  });
};

/** Without a database; it refuses to start without a key that it finds strong. */
const litellm: Start = async (enginePort) => {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'polar-bench-litellm-'));
  const key = `sk-${randomBytes(24).toString('hex')}`;
  const config = {
    model_list: [
      {
        model_name: 'policy',
        litellm_params: { model: 'hosted_vllm/served', api_base: `http://127.0.0.1:${enginePort}/v1` },
      },
    ],
    general_settings: { master_key: key },
  };
  writeFileSync(join(folder, 'config.yaml'), JSON.stringify(config));
  const own = ['--config', join(folder, 'config.yaml'), '--host', '127.0.0.1', '--port', String(port)];
  const command = [binOf('litellm', 'litellm'), ...own, '--num_workers', '1', '--telemetry', 'False'];
  const env = { LITELLM_MASTER_KEY: key, LITELLM_LOG: 'ERROR', LITELLM_LOCAL_MODEL_COST_MAP: 'True' };
  return await peer(port, { command, ready: '/health/liveliness', env, folder, key });
};

interface PolarOptions {
  /** Of the engine; default: as the stand-in's. */
  readonly kind?: 'vllm' | 'sglang';
  readonly mode?: 'text' | 'token';
  readonly nodeFlags?: readonly string[];
}

/** Ours: a real nats-server, sessions let in by capabilities, each record durable before its reply ends. */
export async function startPolar(enginePort: number, options: PolarOptions = {}): Promise<PolarCandidate> {
  const { kind = 'vllm', mode = 'text', nodeFlags = [] } = options;
  const engineUrl = `http://127.0.0.1:${enginePort}`;
  const proxy = await TestProxy.prepare({ engineUrl, kind, inference: { mode } });
  const profiled = PROFILES === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${PROFILES}`];
  try {
    const started = [process.execPath, ...nodeFlagsOf('llm-proxy'), ...nodeFlags, ...profiled];
    await proxy.spawn([...pinned, ...started], { POLAR_LOG_LEVEL: 'info' });
  } catch (error) {
    await proxy[Symbol.asyncDispose]();
    throw error;
  }
  return new PolarCandidate(proxy);
}

export class PolarCandidate implements Candidate {
  readonly proxy: TestProxy;
  readonly key = NO_KEY;
  #sessions = 0;
  #open: string[] = [];

  constructor(proxy: TestProxy) {
    this.proxy = proxy;
  }

  get port(): number {
    return Number(new URL(this.proxy.url).port);
  }

  get pid(): number | undefined {
    return this.proxy.pid;
  }

  async paths(sessions: number): Promise<readonly string[]> {
    const names = Array.from({ length: sessions }, () => `bench-${this.#sessions++}`);
    this.#open.push(...names);
    const capabilities = await Promise.all(names.map((name) => this.proxy.admit(name)));
    return capabilities.map((capability) => `/s/${capability}${CHAT}`);
  }

  /** As their executor does. */
  async closeSessions(): Promise<void> {
    for (const sessionId of this.#open) {
      await this.proxy.client.closeSession({ sessionId, attempt: 1 });
      await this.proxy.revoke(sessionId);
    }
    this.#open = [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A profile is written where the process ends by itself.
    if (PROFILES !== undefined) await this.proxy.kill('SIGTERM');
    await this.proxy[Symbol.asyncDispose]();
  }
}

export const CANDIDATES: Readonly<Record<CandidateName, Start>> = {
  direct,
  'node-http': nodeHttp,
  polar: (enginePort) => startPolar(enginePort),
  'vllm-router': vllmRouter,
  'fastapi-httpx': fastapi,
  litellm,
};
