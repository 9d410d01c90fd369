// What holds the processes of one command together, so that all of them can be killed and their absence proved.
import type { ChildProcess } from 'node:child_process';
import type { SandboxLimits } from '../domain/plan.ts';
import type { MemoryEvents } from './memory-events.ts';

export interface CellUsage extends MemoryEvents {
  /** 0 where it is not measured. */
  readonly peakMemoryBytes: number;
  /** 0 where it is not measured. */
  readonly cpuMs: number;
}

/** The processes of one command. */
export interface Cell {
  /** Descriptors that it needs in the child, behind those of the command. */
  readonly fdCount: number;
  /** The command inside the cell; its first act is to enter it. */
  wrap(argv: readonly string[], firstFd: number): string[];
  /** Call right after the spawn. */
  attach(child: ChildProcess, firstFd: number): void;
  /** Start killing everything; does not wait. */
  kill(): void;
  /** Kill what is left and wait: true when nothing is, false after SANDBOX_END_MS. */
  end(): Promise<boolean>;
  usage(): CellUsage;
  /** That of `usage`, at less cost: it is asked for all the time. */
  oomKills(): number;
  /** Give up what the cell itself holds; call after `end`. */
  close(): Promise<void>;
}

export interface Containment {
  /** `cgroup` or `supervisor`. */
  readonly kind: string;
  /** Limits that are enforced here. */
  readonly enforced: readonly ('memory' | 'pids' | 'cpu')[];
  /** `name` is unique among open cells. */
  open(name: string, limits: SandboxLimits): Cell;
}
