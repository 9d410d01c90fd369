// One installing command that ends with its parent.
import { once } from 'node:events';
import process from 'node:process';
import { spawnChild } from '../../common/spawn-child.ts';

export interface CommandEnd {
  readonly exitCode: number;
  /** The end of what it wrote. */
  readonly outputTail: string;
}

const TAIL_CHARS = 2_000;

/** Runs a command in its own process group, and ends that group when standard input ends, as it does when the parent is gone. */
const WITH_LIFELINE = [
  'exec 3<&0 </dev/null',
  '"$@" 3<&- & work=$!',
  '{ read -r _ <&3; kill -TERM 0; } & watch=$!',
  'wait "$work"; code=$?',
  'kill "$watch" 2>/dev/null',
  'exit "$code"',
].join('\n');

/** Run it in `folder`; what it leaves running is ended with it. Rejects when the shell cannot be started; a program that is not there ends with 127. */
export async function runCommand(
  folder: string,
  argv: readonly string[],
  signal: AbortSignal,
): Promise<CommandEnd> {
  signal.throwIfAborted();
  const child = spawnChild('sh', ['-c', WITH_LIFELINE, 'sh', ...argv], {
    cwd: folder,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let tail = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      tail = (tail + text).slice(-TAIL_CHARS);
    });
  }
  child.stdin.on('error', () => {});
  const stop = (): void => killGroup(child.pid);
  // What is left of it may hold its output open for ever.
  child.once('exit', stop);
  signal.addEventListener('abort', stop, { once: true });
  try {
    const [code] = (await once(child, 'close')) as [number | null];
    signal.throwIfAborted();
    return { exitCode: code ?? 1, outputTail: tail.trim() };
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}
