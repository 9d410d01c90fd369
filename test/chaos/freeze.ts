// A machine that is lost and comes back: all its processes stand still for a while, and none of them notices.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import process from 'node:process';

export interface Frozen {
  /** They go on; resolves when all have been told. */
  thaw(): Promise<void>;
}

/** Stops these processes and all that descend from them. They go on, too, if this process ends before it thaws them. */
export function freeze(roots: readonly number[]): Frozen {
  const stopped = new Set<number>();
  // What forks while it is being stopped is found by the next look.
  for (let before = -1; stopped.size > before; ) {
    before = stopped.size;
    for (const pid of treesOf(roots)) if (!stopped.has(pid) && stop(pid)) stopped.add(pid);
  }
  const script = 'read _; for pid; do kill -CONT "$pid" 2> /dev/null; done';
  const waker = spawn('sh', ['-c', script, 'sh', ...[...stopped].map(String)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const ended = once(waker, 'exit');
  return {
    async thaw() {
      waker.stdin.end();
      await ended;
    },
  };
}

function stop(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGSTOP');
  } catch {
    // It has ended.
    return false;
  }
}

function treesOf(roots: readonly number[]): number[] {
  const children = Map.groupBy(parents(), ([, parent]) => parent);
  const found: number[] = [];
  for (const waiting = [...roots]; waiting.length > 0; ) {
    const pid = waiting.pop() as number;
    found.push(pid);
    waiting.push(...(children.get(pid) ?? []).map(([child]) => child));
  }
  return found;
}

/** Every process with its parent. */
function parents(): (readonly [number, number])[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const [, parent = '0'] = /\) \S (\d+) /.exec(readFileSync(`/proc/${name}/stat`, 'latin1')) ?? [];
        return [[Number(name), Number(parent)] as const];
      } catch {
        // It has ended.
        return [];
      }
    });
}
