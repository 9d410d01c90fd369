// The `polar` command as its users run it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

export const ROOT = join(import.meta.dirname, '..', '..');
const POLAR = join(ROOT, 'bin/polar.js');

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Default: the Node that runs the tests. */
  readonly node?: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly ended: Promise<Ended>;
}

export function startPolar(args: readonly string[], options: RunOptions = {}): Running {
  const { POLAR_NATS_URL: _, ...inherited } = process.env;
  const child = spawn(options.node ?? process.execPath, [POLAR, ...args], {
    cwd: options.cwd ?? ROOT,
    env: { ...inherited, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
    });
  }
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...text }));
  return { child, stdout: () => text.stdout, stderr: () => text.stderr, ended };
}

/** Run a command to its end. */
export const polar = (args: readonly string[], options?: RunOptions): Promise<Ended> =>
  startPolar(args, options).ended;

/** Living processes that name a text in command line or environment, or have something below a folder of that name open. */
export function usersOf(text: string): string[] {
  const found: string[] = [];
  for (const pid of readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && name !== String(process.pid),
  )) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
      if (/\) [ZX] /.test(stat)) continue;
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      const open = readdirSync(`/proc/${pid}/fd`).some((fd) =>
        readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith(`${text}/`),
      );
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
      if (open || command.includes(text) || environment.includes(text)) found.push(`${pid} ${command}`);
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

/** Mounts below a folder. */
export const mountsBelow = (folder: string): string[] =>
  readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .filter((line) => line.includes(` ${folder}/`));
