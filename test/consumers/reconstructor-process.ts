// A reconstructor as a process of its own, to be killed.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { programOf } from '../../tools/built.mjs';
import { eventually } from '../support/eventually.ts';

const main = programOf(join(import.meta.dirname, '../../services/reconstructor/main.ts'));

/** A process; its disposal is SIGKILL. */
export interface Running extends AsyncDisposable {
  /** How it ended by itself; undefined while it runs. */
  ended(): number | string | undefined;
}

export interface ReconstructorProcess extends Running {
  readonly url: string;
  signal(name: NodeJS.Signals): void;
}

/** Returns when it is ready. */
export async function startReconstructorProcess(
  port: number,
  natsUrl: string,
): Promise<ReconstructorProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-reconstructor-'));
  const topology = join(folder, 'topology.yaml');
  writeFileSync(topology, `reconstructor: { host: 127.0.0.1, port: ${port} }\n`);
  const settings = { POLAR_TOPOLOGY: topology, POLAR_NATS_URL: natsUrl, POLAR_LOG_LEVEL: 'silent' };
  const env = { ...process.env, ...settings, POLAR_LIFELINE: 'stdin' };
  const child = spawn(process.execPath, [main], { env, stdio: ['pipe', 'inherit', 'inherit'] });
  const url = `http://127.0.0.1:${port}`;
  const running = runningOf(child);
  await eventually('the reconstructor is ready', async () => {
    if (running.ended() !== undefined) throw new Error(`the reconstructor ended: ${running.ended()}`);
    const answer = await fetch(`${url}/readyz`).catch(() => undefined);
    return answer?.ok === true;
  });
  return {
    url,
    ended: running.ended,
    signal: (name) => child.kill(name),
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export function runningOf(child: ChildProcess): Running {
  const ended = (): number | string | undefined => child.exitCode ?? child.signalCode ?? undefined;
  return {
    ended,
    async [Symbol.asyncDispose]() {
      if (ended() !== undefined) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}
