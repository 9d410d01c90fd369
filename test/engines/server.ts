// A real engine as a process: started on a free port of the loopback, waited for, ended with all its children.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { sleep } from '../../services/common/clock.ts';
import { freePort } from '../support/nats.ts';
import type { RealEngine } from './kinds/engine.ts';
import { say } from './setup/command.ts';

/** vLLM takes 100 s on two cores that do something else, too. */
const READY_MS = 10 * 60_000;
const PROGRESS_MS = 20_000;
const END_MS = 15_000;
const LOG_LINES_MAX = 15;

export interface EngineServer extends AsyncDisposable {
  readonly url: string;
  readonly startSeconds: number;
}

/** With more options, if any. Throws what the engine said last where it does not start. */
export async function startEngine(engine: RealEngine, more: readonly string[] = []): Promise<EngineServer> {
  const stack = new AsyncDisposableStack();
  try {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-engine-'));
    stack.defer(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
    const port = await freePort();
    const { argv, env } = await engine.command(port);
    const log = join(folder, 'log');
    const file = openSync(log, 'w');
    const started = performance.now();
    // A group of its own, so that what it starts ends with it; niced, since it would take all cores there are.
    const child = spawn('setpriv', ['--pdeathsig', 'TERM', 'nice', '-n', '10', ...argv, ...more], {
      env: { ...process.env, ...env },
      stdio: ['ignore', file, file],
      cwd: folder,
      detached: true,
    });
    closeSync(file);
    const kill = (): void => void signal(child.pid ?? 0, 'SIGKILL');
    process.once('exit', kill);
    stack.defer(async () => {
      await endGroup(child);
      process.off('exit', kill);
    });
    const url = `http://127.0.0.1:${port}`;
    await ready(engine.title, child, url, log);
    const startSeconds = Math.round((performance.now() - started) / 1_000);
    const owned = stack.move();
    return { url, startSeconds, [Symbol.asyncDispose]: () => owned.disposeAsync() };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

async function ready(title: string, child: ChildProcess, url: string, log: string): Promise<void> {
  let failed: Error | undefined;
  child.once('error', (error) => {
    failed = error;
  });
  const started = performance.now();
  for (let told = started; ; await sleep(250)) {
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    if (answer?.ok === true) return;
    const now = performance.now();
    const ended = failed?.message ?? child.exitCode ?? child.signalCode;
    if (ended !== null || now - started > READY_MS) {
      const why = ended === null ? `not ready within ${READY_MS / 1_000} s` : `ended with ${ended}`;
      const said = readFileSync(log, 'utf8').trim().split('\n').slice(-LOG_LINES_MAX).join('\n');
      throw new Error(`${title} does not start here: ${why}\n${said}`);
    }
    if (now - told > PROGRESS_MS) {
      told = now;
      say(`${title}: starting, ${((now - started) / 1_000).toFixed(0)} s …`);
    }
  }
}

/** TERM, and KILL for what is left of the group. */
async function endGroup(child: ChildProcess): Promise<void> {
  const { pid } = child;
  if (pid === undefined) return;
  signal(pid, 'SIGTERM');
  for (let waited = 0; waited < END_MS && signal(pid, 0); waited += 100) await sleep(100);
  signal(pid, 'SIGKILL');
}

/** Whether the group had a process to take it. */
function signal(group: number, name: NodeJS.Signals | 0): boolean {
  try {
    return group > 0 && process.kill(-group, name);
  } catch {
    return false;
  }
}
