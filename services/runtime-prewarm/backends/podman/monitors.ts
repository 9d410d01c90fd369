// Podman keeps a monitor of each command (conmon, with a child) for five minutes after its end. Those of a container that is
// gone watch nothing any more.
import { readdir, readFile } from 'node:fs/promises';
import process from 'node:process';
import { sleep } from '../../../common/clock.ts';
import { monitoredIn } from '../../domain/podman-monitor.ts';

/** A look reads the command line of every process of this machine (tens of ms): one is for all that went meanwhile. */
const GATHER_MS = 500;

export class Monitors {
  readonly #gone = new Set<string>();
  #isLooking = false;

  /** Ends those of a container, soon. */
  end(container: string): void {
    this.#gone.add(container);
    if (!this.#isLooking) void this.#look();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    while (this.#gone.size > 0) {
      await sleep(GATHER_MS);
      const gone = new Set(this.#gone);
      this.#gone.clear();
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
