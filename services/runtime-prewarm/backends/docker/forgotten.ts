// An engine that is killed while it starts a container may not know it when it is back (Docker 28: one start in twenty): its
// shim runs on, at times with the first process of the container, and no call to the engine can end them.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolders } from '../../../common/folders.ts';
import { containerIn, shimOf } from '../../domain/container-shim.ts';
import { killWhere, readOf } from '../../host/process-table.ts';

/** The end of a shim lets what it ran become another's child: one look may find the one, and the next one the other. */
const LOOKS = 3;

/** A file for each start that the engine has not answered yet: the next manager knows of them, too. */
export class Forgotten {
  readonly #folder: string;
  /** Containers whose start was broken off, with the looks that are left for each. */
  readonly #starts: Map<string, number>;

  constructor(folder: string) {
    this.#folder = folder;
    const left = existsSync(folder) ? readdirSync(folder) : [];
    this.#starts = new Map(left.map((container) => [container, LOOKS]));
  }

  /** The engine will be told to start that one. */
  begins(container: string): void {
    makeFolders(this.#folder);
    writeFileSync(join(this.#folder, container), '');
  }

  /** The engine has answered, one way or the other. */
  answered(container: string): void {
    this.#starts.delete(container);
    rmSync(join(this.#folder, container), { force: true });
  }

  /** The engine went while it started that one. */
  add(container: string): void {
    this.#starts.set(container, LOOKS);
  }

  /** Ends what is left of those that are not among the ones that the engine knows, now that it is back. */
  async end(known: ReadonlySet<string>): Promise<void> {
    const gone = new Set([...this.#starts.keys()].filter((id) => !known.has(id)));
    if (gone.size === 0) return;
    await killWhere(async (pid) => {
      const ids = [shimOf(await readOf(pid, 'cmdline')), containerIn(await readOf(pid, 'cgroup'))];
      return ids.some((id) => id !== undefined && gone.has(id));
    });
    for (const id of gone) {
      const left = (this.#starts.get(id) ?? 0) - 1;
      if (left > 0) this.#starts.set(id, left);
      else this.answered(id);
    }
  }
}
