// The process of a plug-in: what it breaks is its own. A thread would not do: one large allocation in it ends the whole
// process, whatever limit the thread has.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
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

export interface PluginEnd {
  readonly message: string;
  /** It could not be started, or the kernel has ended it for want of memory of the machine: that is no matter of the plug-in. */
  readonly isOfNode: boolean;
}

/** Of a process that has just been started: resolves when it has ended and nothing that it said is on its way any more. */
export function pluginEnd(child: ChildProcess): Promise<PluginEnd> {
  const { promise, resolve } = Promise.withResolvers<PluginEnd>();
  const killsBefore = memoryKills();
  child.once('error', ({ message }) => resolve({ message, isOfNode: true }));
  child.once('exit', (code, signal) => {
    const isOfNode = signal === 'SIGKILL' && memoryKills() > killsBefore;
    const how = `its process ended with ${signal ?? `exit code ${code}`}`;
    const message = isOfNode ? `${how}, as the node is out of memory (ENOMEM)` : how;
    const ended = (): void => resolve({ message, isOfNode });
    // What it said last may still be on its way.
    if (child.connected) child.once('disconnect', ended);
    else ended();
  });
  return promise;
}

/** Processes of this machine that its kernel has ended for want of memory. */
function memoryKills(): number {
  try {
    return Number(/^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'latin1'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
