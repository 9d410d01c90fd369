// Podman keeps a monitor of each command (conmon, with a child) for five minutes after its end. Those of a container that is
// gone watch nothing any more.
import { readdir, readFile } from 'node:fs/promises';
import process from 'node:process';
import { sleep } from '../../../common/clock.ts';
import { monitoredIn } from '../../domain/podman-monitor.ts';

/** A look reads the command line of every process of this machine (tens of ms): one is for all that went meanwhile. */
const GATHER_MS = 500;

/** A monitor makes a child when its command ends: one look may find the parent just before, and the next one the child. */
const LOOKS = 3;

export class Monitors {
  /** Containers that went, with the looks that are left for each. */
  readonly #gone = new Map<string, number>();
  #isLooking = false;

  /** Ends those of a container, soon. */
  end(container: string): void {
    this.#gone.set(container, LOOKS);
    if (!this.#isLooking) void this.#look();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    while (this.#gone.size > 0) {
      await sleep(GATHER_MS);
      const gone = new Set(this.#gone.keys());
      for (const [container, left] of this.#gone) {
        if (left === 1) this.#gone.delete(container);
        else this.#gone.set(container, left - 1);
      }
      for (const name of await readdir('/proc').catch(() => []))
        if (/^\d+$/.test(name)) await endOf(name, gone);
    }
    this.#isLooking = false;
  }
}

async function endOf(pid: string, gone: ReadonlySet<string>): Promise<void> {
  const container = monitoredIn(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''));
  if (container === undefined || !gone.has(container)) return;
  try {
    process.kill(Number(pid), 'SIGKILL');
  } catch {
    // It has ended.
  }
}
