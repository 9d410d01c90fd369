// Containment where control groups cannot be made: a small supervisor in front of each command, to which every orphan
// of the command comes back, and which kills all of them when the command or this process ends. No limits.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { withTimeout } from '../../common/clock.ts';
import { SANDBOX_END_MS } from '../../common/limits.ts';
import type { Cell, CellUsage, Containment } from './containment.ts';
import { NO_MEMORY_EVENTS } from './memory-events.ts';

const SUPERVISOR = join(import.meta.dirname, 'supervise.py');

/** `python`: path of the interpreter. */
export const supervisorContainment = (python: string): Containment => ({
  kind: 'supervisor',
  enforced: [],
  open: () => new SupervisorCell(python),
});

class SupervisorCell implements Cell {
  readonly fdCount = 1;
  readonly #python: string;
  #child: ChildProcess | undefined;
  #lifeline: Writable | undefined;

  constructor(python: string) {
    this.#python = python;
  }

  wrap(argv: readonly string[], firstFd: number): string[] {
    return [this.#python, '-ISu', SUPERVISOR, String(firstFd), ...argv];
  }

  attach(child: ChildProcess, firstFd: number): void {
    this.#child = child;
    this.#lifeline = child.stdio[firstFd] as Writable;
    this.#lifeline.on('error', () => {});
  }

  kill(): void {
    this.#lifeline?.destroy();
  }

  /** The supervisor ends only when it has no descendant left, so its own exit is the proof. */
  async end(): Promise<boolean> {
    this.kill();
    const child = this.#child;
    if (child?.pid === undefined) return true;
    if (child.exitCode === null && child.signalCode === null) {
      await once(child, 'exit', { signal: withTimeout(SANDBOX_END_MS) }).catch(() => {});
    }
    return child.exitCode !== null;
  }

  usage(): CellUsage {
    return { ...NO_MEMORY_EVENTS, peakMemoryBytes: 0, cpuMs: 0 };
  }

  oomKills(): number {
    return 0;
  }

  async close(): Promise<void> {
    this.kill();
  }
}
