// A process that is kept running: whatever ends it, it is started again, as the supervisor of a machine does.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { sleep } from '../../services/common/clock.ts';

const RESTART_PAUSE_MS = 300;

export class Kept {
  readonly name: string;
  readonly #spawn: () => ChildProcess;
  #child: ChildProcess | undefined;
  #startedMs = 0;
  #asked = false;
  #stopping = false;
  #kept: Promise<void> | undefined;

  constructor(name: string, spawn: () => ChildProcess) {
    this.name = name;
    this.#spawn = spawn;
  }

  start(): void {
    this.#kept ??= this.#keep();
  }

  /** Undefined between its end and its next start. */
  get pid(): number | undefined {
    return this.#child === undefined || hasEnded(this.#child) ? undefined : this.#child.pid;
  }

  /** Since its last start; 0 where it has been asked to end. */
  get ageMs(): number {
    return this.pid === undefined || this.#asked ? 0 : performance.now() - this.#startedMs;
  }

  /** False where it does not run at the moment. */
  kill(signal: NodeJS.Signals): boolean {
    this.#asked = true;
    return this.pid !== undefined && this.#child?.kill(signal) === true;
  }

  /** SIGTERM, and no new start; resolves when it has ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.kill('SIGTERM');
    await this.#kept;
  }

  async #keep(): Promise<void> {
    while (!this.#stopping) {
      this.#child = this.#spawn();
      this.#startedMs = performance.now();
      this.#asked = false;
      await once(this.#child, 'exit');
      if (!this.#stopping) await sleep(RESTART_PAUSE_MS);
    }
  }
}

const hasEnded = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;
