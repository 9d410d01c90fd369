// A command that a person started through this one: it has the terminal, and its end is this one's.
import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { endOf } from './mesh/child.ts';
import { STOPS, stopCode } from './stops.ts';

export interface Ended {
  /** As in a shell: 127 where it is not there, 128 and the number of a signal. */
  readonly code: number;
  /** How it ended, for people. */
  readonly why: string;
  /** It was stopped, or never begun: how it would have ended is not known. */
  readonly isStopped: boolean;
}

/** Runs to its end with these variables alone. What stops this process stops the command, and this process goes on to say so. */
export async function runHere(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  const [program, ...rest] = withoutHangUps([command, ...args], env);
  const child = spawn(program, rest, { stdio: 'inherit', env });
  let stop: NodeJS.Signals | undefined;
  const onStop = (signal: NodeJS.Signals): void => {
    if (stop === undefined || signal !== 'SIGINT') stop = signal;
    // A terminal's own goes to both.
    if (signal !== 'SIGINT') child.kill(signal);
  };
  for (const signal of STOPS) process.on(signal, onStop);
  try {
    return await new Promise<Ended>((resolve) => {
      child.once('error', ({ message }) => resolve({ code: 127, why: message, isStopped: true }));
      child.once('exit', (exitCode, signal) => {
        const code = exitCode ?? stopCode(signal ?? 'SIGKILL');
        // Programs with a prompt take an interrupt as a key of theirs, and end well much later.
        const isStopped = stop !== undefined && !(stop === 'SIGINT' && code === 0);
        resolve({ code, why: (isStopped && stop) || `it ended with ${endOf(code)}`, isStopped });
      });
    });
  } finally {
    for (const signal of STOPS) process.off(signal, onStop);
  }
}

/**
 * A process that Node.js starts ends at a hang-up, whatever this one does. Where hang-ups are passed over (`stops.ts`) no stream is a
 * terminal, so that nohup does nothing but that. What is not there is left to be told by its start.
 */
function withoutHangUps(
  line: readonly [command: string, ...args: string[]],
  { PATH = '' }: Readonly<Record<string, string>>,
): readonly [program: string, ...args: string[]] {
  const isAsItIs = STOPS.includes('SIGHUP') || !isThere('nohup', PATH) || !isThere(line[0], PATH);
  return isAsItIs ? line : ['nohup', ...line];
}

const isThere = (command: string, path: string): boolean =>
  command.includes('/') ? canRun(command) : path.split(':').some((folder) => canRun(join(folder, command)));

function canRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** What has to be said still, though the one who stopped the command may do so again. */
export async function unstopped(task: () => Promise<unknown>): Promise<void> {
  const onStop = (): void => {};
  for (const signal of STOPS) process.on(signal, onStop);
  try {
    await task();
  } finally {
    for (const signal of STOPS) process.off(signal, onStop);
  }
}
