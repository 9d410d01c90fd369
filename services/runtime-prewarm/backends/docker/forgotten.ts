// An engine that is killed while it starts or deletes a container may not know it when it is back (Docker 28: nearly every
// second start): its shim runs on, at times with the first process of the container, and no call to the engine can end them.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolders } from '../../../common/folders.ts';
import { containerIn, shimOf } from '../../domain/container-shim.ts';
import { killWhere, readOf } from '../../host/process-table.ts';

/** The end of a shim lets what it ran become another's child: one look may find the one, and the next one the other. */
const LOOKS = 3;

/** A file for each container until it is over, so that the next manager knows of them, too. */
export class Forgotten {
  readonly #folder: string;
  readonly #begun: Set<string>;
  /** Those that were there as the engine went, with the looks that are left for each. */
  readonly #suspects: Map<string, number>;

  constructor(folder: string) {
    this.#folder = folder;
    this.#begun = new Set(existsSync(folder) ? readdirSync(folder) : []);
    this.#suspects = new Map();
    // Nobody knows what the engine did meanwhile.
    this.engineWent();
  }

  /** All that may be there. */
  get begun(): readonly string[] {
    return [...this.#begun];
  }

  /** The engine is about to start that one. */
  begins(container: string): void {
    makeFolders(this.#folder);
    writeFileSync(join(this.#folder, container), '');
    this.#begun.add(container);
  }

  /** A call to it broke, or a connection that it holds as long as a container runs. */
  engineWent(): void {
    for (const container of this.#begun) this.#suspects.set(container, LOOKS);
  }

  /** The engine knows of `known`, and `begun` had begun before it was asked: ends what is left of the others. */
  async end(begun: readonly string[], known: ReadonlySet<string>): Promise<void> {
    const over = begun.filter((container) => !known.has(container));
    const forgotten = new Set(over.filter((container) => this.#suspects.has(container)));
    if (forgotten.size > 0) {
      await killWhere(async (pid) => {
        const ids = [shimOf(await readOf(pid, 'cmdline')), containerIn(await readOf(pid, 'cgroup'))];
        return ids.some((id) => id !== undefined && forgotten.has(id));
      });
    }
    for (const container of over) {
      const left = (this.#suspects.get(container) ?? 1) - 1;
      if (left > 0) this.#suspects.set(container, left);
      else this.#isOver(container);
    }
  }

  #isOver(container: string): void {
    this.#suspects.delete(container);
    this.#begun.delete(container);
    rmSync(join(this.#folder, container), { force: true });
  }
}
