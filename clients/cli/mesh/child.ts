// A child process with a lifeline: it ends when its standard input does, so that nothing outlives this process.
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { constants } from 'node:os';
import process from 'node:process';
import { STOP_FORCE_MS } from '../../../services/common/limits.ts';

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** `inherit`, or a file to append to. */
  readonly output: 'inherit' | { readonly file: string };
  /** Standard output through a pipe instead, for a child that says where it listens. */
  readonly pipeOutput?: boolean;
  /** What the child gets as file descriptor 3. */
  readonly third?: number;
}

export interface Child {
  readonly pid: number;
  readonly process: ChildProcess;
  /** Exit code; as in a shell 128 and the number of a signal. */
  readonly ended: Promise<number>;
  /** The signal, SIGTERM unless another is given, then SIGKILL after a grace. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export function startChild({ command, args, env, output, pipeOutput, third }: ChildOptions): Child {
  const log = output === 'inherit' ? undefined : openSync(output.file, 'a');
  const out = log ?? 'inherit';
  // A session of its own: Ctrl-C reaches this process alone, which then stops its children in order.
  const child = spawn(command, args, {
    env,
    stdio: ['pipe', pipeOutput === true ? 'pipe' : out, out, ...(third === undefined ? [] : [third])],
    detached: true,
  });
  if (log !== undefined) closeSync(log);
  child.stdin?.on('error', () => {});
  const ended = new Promise<number>((resolve) => {
    child.once('exit', (code, signal) => {
      killGroup(child.pid);
      resolve(code ?? 128 + constants.signals[signal ?? 'SIGKILL']);
    });
    child.once('error', () => resolve(127));
  });
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    child.stdin?.end();
    child.kill(signal);
    const force = setTimeout(() => killGroup(child.pid), STOP_FORCE_MS + 1_000);
    await ended;
    clearTimeout(force);
  };
  return { pid: child.pid ?? 0, process: child, ended, stop };
}

/** An exit code as it is told: `SIGKILL`, or `exit code 3`. */
export function endOf(code: number): string {
  const [name] = Object.entries(constants.signals).find(([, number]) => number === code - 128) ?? [];
  return name ?? `exit code ${code}`;
}

/** What a child left in its process group. What it put into groups of its own has owners of its own. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left.
  }
}
