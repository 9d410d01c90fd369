// The control groups that a container engine made for a container, as containment: its processes but the first two, which
// belong to the container itself, are those of a command.
import { join } from 'node:path';
import process from 'node:process';
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { SANDBOX_END_MS, SANDBOX_PIDS_MAX, SANDBOX_START_MS } from '../../common/limits.ts';
import type { CellUsage } from './containment.ts';
import { findMounts, readIfThere, writeQuietly } from './hierarchies.ts';
import {
  eventsSince,
  type MemoryEvents,
  memoryEvents,
  NO_MEMORY_EVENTS,
  oomKillsOf,
} from './memory-events.ts';

/** The init and `cat`. */
const OWN_PROCESSES = 2;
/** In /proc/PID/stat, behind the name. */
const FLAGS_AT = 7;
const PF_EXITING = 4;
/** Between two looks whether it is only its init and `cat` yet, doubled from one to the next. */
const SETTLE_MIN_MS = 2;
const SETTLE_MAX_MS = 32;
/** Of a container that does not stay. */
export const ENDED_AT_ONCE = 'the container ended at once: its image needs the program cat, for this machine';

interface Group {
  readonly folder: string;
  readonly v2: boolean;
}

export class ContainerGroup {
  /** They stay where they are; the list of all mounts is long where there are many containers. */
  static #mounts: ReturnType<typeof findMounts> | undefined;
  readonly #pids: Group;
  readonly #memory: Group;
  readonly #cpu: Group;
  /** In v1 what is frozen, as by `docker pause`, does not die. */
  #freezer: string | undefined;
  #own = new Set<number>();
  /** Nothing can be forked in it: else it may have what it was made with. */
  #isHeld = false;
  #before = { ...NO_MEMORY_EVENTS, cpuMs: 0 };

  private constructor(find: (controller: string) => Group) {
    this.#pids = find('pids');
    this.#memory = find('memory');
    this.#cpu = find('cpuacct');
  }

  /** Of the container with that first process, which is only its init and `cat` yet. Throws SANDBOX_FAILED. */
  static async of(pid: number, id: string): Promise<ContainerGroup> {
    ContainerGroup.#mounts ??= findMounts();
    const { v2, v1 } = ContainerGroup.#mounts;
    const paths = pathsOf(pid);
    const group = new ContainerGroup((controller) => {
      const point = v1.get(controller);
      const [root, path] = point === undefined ? [v2, paths.get('')] : [point, paths.get(controller)];
      if (root === undefined || path === undefined || !path.includes(id)) {
        if (hasEnded(pid)) throw new PolarError('BACKEND_UNAVAILABLE', ENDED_AT_ONCE);
        throw failed("the engine's containers are not in control groups that this process sees");
      }
      return { folder: join(root, path), v2: point === undefined };
    });
    const [point, path] = [v1.get('freezer'), paths.get('freezer')];
    if (point !== undefined && path?.includes(id)) group.#freezer = join(point, path, 'freezer.state');
    await group.#settle();
    return group;
  }

  has(pid: number): boolean {
    return this.#processes().includes(pid);
  }

  /** Whether it has processes beside its own. */
  get hasOthers(): boolean {
    return this.#others().length > 0;
  }

  /** A command begins: what is used from now on is its own. */
  begin(): void {
    this.#letGo();
    // The kernel takes it in v1 only: elsewhere the peak is that of the whole sandbox.
    if (!this.#memory.v2) writeQuietly(join(this.#memory.folder, 'memory.max_usage_in_bytes'), 0);
    this.#before = this.#counters();
  }

  /** Kill what commands have left running; nothing is forked meanwhile. Does not wait. */
  kill(): void {
    this.#hold();
    for (const pid of this.#others()) kill(pid);
    if (this.#freezer !== undefined) writeQuietly(this.#freezer, 'THAWED');
  }

  /** Kill what is left and wait: true when only the container's own processes are, or it has none; false after SANDBOX_END_MS. */
  async end(): Promise<boolean> {
    const until = performance.now() + SANDBOX_END_MS;
    try {
      for (let pauseMs = 1; this.#others().length > 0; pauseMs = Math.min(pauseMs * 2, 20)) {
        this.kill();
        if (performance.now() > until) return false;
        await sleep(pauseMs);
      }
      return true;
    } finally {
      this.#letGo();
    }
  }

  /** The container's own too. Resolves to true when nothing is left. */
  async endAll(): Promise<boolean> {
    this.#own = new Set();
    return await this.end();
  }

  usage(): CellUsage {
    const { folder, v2 } = this.#memory;
    const peak = readIfThere(join(folder, v2 ? 'memory.peak' : 'memory.max_usage_in_bytes'));
    const now = this.#counters();
    return {
      ...eventsSince(now, this.#before),
      cpuMs: Math.max(0, now.cpuMs - this.#before.cpuMs),
      peakMemoryBytes: Number(peak || 0),
    };
  }

  oomKills(): number {
    const { folder, v2 } = this.#memory;
    return Math.max(0, oomKillsOf(folder, v2) - this.#before.oomKills);
  }

  async #settle(): Promise<void> {
    const until = performance.now() + SANDBOX_START_MS;
    let [pids, pauseMs] = [this.#processes(), SETTLE_MIN_MS];
    for (; !areOwn(pids); pids = this.#processes()) {
      if (pids.length === 0) throw new PolarError('BACKEND_UNAVAILABLE', ENDED_AT_ONCE);
      if (performance.now() > until) throw failed('the container has not begun to wait for commands');
      await sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 2, SETTLE_MAX_MS);
    }
    this.#own = new Set(pids);
  }

  #counters(): MemoryEvents & { cpuMs: number } {
    const { folder, v2 } = this.#cpu;
    const cpu = readIfThere(join(folder, v2 ? 'cpu.stat' : 'cpuacct.usage'));
    const cpuMs = v2 ? Number(/^usage_usec (\d+)/m.exec(cpu)?.[1] ?? 0) / 1e3 : Number(cpu || 0) / 1e6;
    return { ...this.#memoryEvents(), cpuMs: Math.round(cpuMs) };
  }

  #memoryEvents(): MemoryEvents {
    return memoryEvents(this.#memory.folder, this.#memory.v2);
  }

  #others(): number[] {
    return this.#processes().filter((pid) => !this.#own.has(pid));
  }

  #processes(): number[] {
    const lines = readIfThere(join(this.#pids.folder, 'cgroup.procs')).split('\n');
    return lines.filter((pid) => pid !== '' && pid !== '0').map(Number);
  }

  #hold(): void {
    this.#isHeld = true;
    this.#limitProcesses(0);
  }

  #letGo(): void {
    if (this.#isHeld) this.#limitProcesses(SANDBOX_PIDS_MAX);
    this.#isHeld = false;
  }

  #limitProcesses(count: number): void {
    writeQuietly(join(this.#pids.folder, 'pids.max'), count);
  }
}

/** Controller to path, as /proc/PID/cgroup tells it; '' is the v2 tree. */
function pathsOf(pid: number): Map<string, string> {
  const lines = readIfThere(`/proc/${pid}/cgroup`).trim().split('\n');
  if (lines[0] === '') throw new PolarError('BACKEND_UNAVAILABLE', ENDED_AT_ONCE);
  return new Map(
    lines.flatMap((line) => {
      const [, names = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
      return names.split(',').map((name) => [name, path] as const);
    }),
  );
}

/** The init, and not itself once more any longer: it looks for `cat` in the child that becomes it. */
function areOwn(pids: readonly number[]): boolean {
  if (pids.length !== OWN_PROCESSES) return false;
  const commands = new Set(pids.map((pid) => readIfThere(`/proc/${pid}/cmdline`)));
  return commands.size === OWN_PROCESSES && !commands.has('');
}

/** The kernel takes a process that ends out of its groups before it shows it as ended, but says before that it ends. */
function hasEnded(pid: number): boolean {
  const stat = readIfThere(`/proc/${pid}/stat`);
  const flags = Number(stat.slice(stat.lastIndexOf(')')).split(' ')[FLAGS_AT]);
  return stat === '' || (flags & PF_EXITING) !== 0;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

const failed = (why: string): PolarError => new PolarError('SANDBOX_FAILED', why);
