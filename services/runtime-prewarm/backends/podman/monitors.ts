// Podman keeps a monitor of each command (conmon, with a child) for five minutes after its end. Those of a container that is
// gone watch nothing any more.
import { sleep } from '../../../common/clock.ts';
import { monitoredIn } from '../../domain/podman-monitor.ts';
import { killWhere, readOf } from '../../host/process-table.ts';

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
      await killWhere(async (pid) => {
        const container = monitoredIn(await readOf(pid, 'cmdline'));
        return container !== undefined && gone.has(container);
      });
    }
    this.#isLooking = false;
  }
}
