// Control groups as containment: one group a command in every hierarchy, joined by the launcher as its first act.
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { sleep } from '../../common/clock.ts';
import { SANDBOX_END_MS, SANDBOX_PIDS_MAX } from '../../common/limits.ts';
import type { SandboxLimits } from '../domain/plan.ts';
import type { Cell, CellUsage, Containment } from './containment.ts';
import {
  type Controller,
  enforcedBelow,
  type Hierarchies,
  makeBases,
  readIfThere,
  writeQuietly,
} from './hierarchies.ts';
import { type MemoryEvents, memoryEvents, oomKillsOf } from './memory-events.ts';

/** A group that is gone makes the write fail, and the launcher with it: removing a group is a fence. */
const JOIN = 'for g in $1; do echo 0 > "$g/cgroup.procs"; done; shift; exec "$@"';
const CPU_PERIOD_US = 100_000;
/** Looks at what ends, however late it is: a process that stood still has not had its time. */
const LOOKS_MIN = 50;

/** `base` names the parent group, one for each manager's data. Undefined where groups cannot be made here. */
export function cgroupContainment(
  base: string,
  hierarchies: Hierarchies,
  endMs = SANDBOX_END_MS,
): Containment | undefined {
  if (!makeBases(hierarchies, base)) return undefined;
  const enforced = enforcedBelow(hierarchies, base);
  return {
    kind: 'cgroup',
    enforced,
    open(name, limits) {
      const cell = new CgroupCell(hierarchies, join(base, name), endMs);
      cell.make(limits, enforced);
      return cell;
    },
  };
}

class CgroupCell implements Cell {
  readonly fdCount = 0;
  readonly #hierarchies: Hierarchies;
  readonly #path: string;
  readonly #folders: readonly string[];
  readonly #endMs: number;
  #child: ChildProcess | undefined;

  constructor(hierarchies: Hierarchies, path: string, endMs: number) {
    this.#endMs = endMs;
    this.#hierarchies = hierarchies;
    this.#path = path;
    this.#folders = hierarchies.roots.map((root) => join(root, path));
  }

  make(limits: SandboxLimits, enforced: readonly Controller[]): void {
    for (const folder of this.#folders) mkdirSync(folder);
    if (enforced.includes('memory') && limits.memoryBytes > 0) this.#limitMemory(limits.memoryBytes);
    if (enforced.includes('pids')) writeQuietly(this.#file('pids', 'pids.max'), SANDBOX_PIDS_MAX);
    if (enforced.includes('cpu') && limits.cpus > 0) {
      const quotaUs = Math.max(1_000, Math.round(limits.cpus * CPU_PERIOD_US));
      if (this.#isV2('cpu')) writeQuietly(this.#file('cpu', 'cpu.max'), `${quotaUs} ${CPU_PERIOD_US}`);
      else writeQuietly(this.#file('cpu', 'cpu.cfs_quota_us'), quotaUs);
    }
  }

  wrap(argv: readonly string[]): string[] {
    return ['sh', '-ec', JOIN, 'sh', this.#folders.join(' '), ...argv];
  }

  attach(child: ChildProcess): void {
    this.#child = child;
  }

  kill(): void {
    // A launcher that has not joined yet.
    this.#child?.kill('SIGKILL');
    if (this.#killAtOnce()) return;
    writeQuietly(this.#file('freezer', 'freezer.state'), 'FROZEN');
    this.#killEach();
    writeQuietly(this.#file('freezer', 'freezer.state'), 'THAWED');
  }

  async end(): Promise<boolean> {
    const until = performance.now() + this.#endMs;
    for (let looks = 1, pauseMs = 1; ; looks++, pauseMs = Math.min(pauseMs * 2, 20)) {
      if (this.#processes().length === 0) return true;
      this.kill();
      if (looks >= LOOKS_MIN && performance.now() > until) return false;
      await sleep(pauseMs);
    }
  }

  usage(): CellUsage {
    const v2 = this.#isV2('memory');
    const peak = readIfThere(this.#file('memory', v2 ? 'memory.peak' : 'memory.max_usage_in_bytes'));
    const cpu = this.#hierarchies.v2 && readIfThere(join(this.#hierarchies.v2, this.#path, 'cpu.stat'));
    return {
      ...this.#memoryEvents(),
      peakMemoryBytes: Number(peak || 0),
      cpuMs: Math.round(Number(/^usage_usec (\d+)/m.exec(cpu ?? '')?.[1] ?? 0) / 1000),
    };
  }

  oomKills(): number {
    return oomKillsOf(this.#file('memory', ''), this.#isV2('memory'));
  }

  /** The kernel answers EBUSY until the last process is reaped. One that stays leaves the others to be removed. */
  async close(): Promise<void> {
    const until = performance.now() + this.#endMs;
    const remove = async (folder: string): Promise<void> => {
      for (let looks = 1; ; looks++) {
        if (removed(folder, looks >= LOOKS_MIN && performance.now() > until)) return;
        await sleep(2);
      }
    };
    await Promise.all(this.#folders.map(remove));
  }

  /** v1 takes the limit with swap after the one without, never before; v2 kills the whole group at the limit. */
  #limitMemory(bytes: number): void {
    const file = (name: string): string => this.#file('memory', name);
    if (this.#isV2('memory')) {
      writeQuietly(file('memory.max'), bytes);
      writeQuietly(file('memory.swap.max'), 0);
      writeQuietly(file('memory.oom.group'), 1);
    } else {
      writeQuietly(file('memory.limit_in_bytes'), bytes);
      writeQuietly(file('memory.memsw.limit_in_bytes'), bytes);
    }
  }

  #memoryEvents(): MemoryEvents {
    return memoryEvents(this.#file('memory', ''), this.#isV2('memory'));
  }

  #killAtOnce(): boolean {
    const { v2 } = this.#hierarchies;
    return v2 !== undefined && writeQuietly(join(v2, this.#path, 'cgroup.kill'), 1);
  }

  #killEach(): void {
    for (const pid of this.#processes()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    }
  }

  /** A launcher joins the v2 group before the others, so that whatever is in those is in this one. */
  #processes(): number[] {
    const folders = this.#hierarchies.v2 === undefined ? this.#folders : this.#folders.slice(0, 1);
    const pids = folders.flatMap((folder) => readIfThere(join(folder, 'cgroup.procs')).split('\n'));
    return [...new Set(pids)].filter((pid) => pid !== '' && pid !== '0').map(Number);
  }

  #isV2(controller: Controller): boolean {
    return this.#hierarchies.points.get(controller) === this.#hierarchies.v2;
  }

  #file(controller: Controller, name: string): string {
    return join(this.#hierarchies.points.get(controller) ?? '/nonexistent', this.#path, name);
  }
}

/** False while processes are in there; throws that where it is `late`. */
function removed(folder: string, late: boolean): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    if (late) throw error;
    return false;
  }
}
