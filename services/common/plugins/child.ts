// The process of a plug-in: what it breaks is its own. A thread would not do: one large allocation in it ends the whole
// process, whatever limit the thread has.
import { type ChildProcess, spawn } from 'node:child_process';
import process from 'node:process';

/** Heap of its process; above, it ends. */
const HEAP_MIB_MAX = 512;
/** All memory that it may write, heap and arrays, in KiB; above, what it allocates throws. */
const DATA_KIB_MAX = 1024 * 1024;
/** Of CPU, for its start. */
const CPU_SECONDS_MORE = 5;

/** Reads what this process holds: its end is that of the group, be that in a wait in which it hears nothing. */
const WATCH = '(read -r _ <&4; kill -9 0) 3>&- & exec 4<&-';

/**
 * A process, in a group of its own, without environment, which may name keys, and without output. The group ends with this
 * process, however that ends; the kernel ends what has used its time.
 */
export function startPlugin(program: string, timeoutMs: number): ChildProcess {
  const limited = `${WATCH}; ulimit -t "$1"; ulimit -d "$2"; shift 2; exec "$@"`;
  const seconds = String(Math.ceil(timeoutMs / 1000) + CPU_SECONDS_MORE);
  const node = [process.execPath, `--max-old-space-size=${HEAP_MIB_MAX}`, program];
  return spawn('sh', ['-c', limited, 'sh', seconds, String(DATA_KIB_MAX), ...node], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc', 'pipe'],
    serialization: 'advanced',
    detached: true,
    env: {},
  });
}

/** With what it started. */
export function endPlugin({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing of it is left.
  }
}

/** Resolves when it has ended and nothing that it said is on its way any more: with how it ended. */
export function pluginEnd(child: ChildProcess): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  child.once('error', (error) => resolve(error.message));
  child.once('exit', (code, signal) => {
    const ended = (): void => resolve(`its process ended with ${signal ?? `exit code ${code}`}`);
    // What it said last may still be on its way.
    if (child.connected) child.once('disconnect', ended);
    else ended();
  });
  return promise;
}
