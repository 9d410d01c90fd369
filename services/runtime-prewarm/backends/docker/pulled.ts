// Images that this node has fetched into an engine: a file each, whose time is that of the last use, so that the next manager
// knows them, too. All others are the operator's. A file is written when the engine has the image, and goes when it has not:
// of a fetch that nobody saw the end of there is none.
import { readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolders } from '../../../common/folders.ts';
import { sha256 } from '../../../common/ids.ts';
import { Holds } from '../../domain/holds.ts';

/** An image, by all names that it was fetched under. */
export interface PulledImage {
  readonly id: string;
  readonly names: readonly string[];
  readonly usedMs: number;
}

interface Entry {
  readonly id: string;
  usedMs: number;
}

/** What was known at a time. */
export type PulledThen = ReadonlyMap<string, object>;

const PART = '.part';

export class PulledImages {
  readonly #folder: string;
  readonly #entries = new Map<string, Entry>();
  readonly #byId = new Holds();
  readonly #byName = new Holds();
  #removal: Promise<unknown> = Promise.resolve();

  constructor(folder: string) {
    this.#folder = folder;
    makeFolders(folder);
    for (const file of readdirSync(folder)) this.#read(file);
  }

  add(name: string, id: string): void {
    const file = this.#fileOf(name);
    writeFileSync(`${file}${PART}`, JSON.stringify({ name, id }));
    renameSync(`${file}${PART}`, file);
    this.#entries.set(name, { id, usedMs: Date.now() });
  }

  used(id: string): void {
    const now = new Date();
    for (const [name, entry] of this.#entries) {
      if (entry.id !== id) continue;
      entry.usedMs = now.getTime();
      try {
        utimesSync(this.#fileOf(name), now, now);
      } catch {
        // Its disk is full, or read-only.
      }
    }
  }

  /** A sandbox lies on it. */
  hold(id: string): () => void {
    const release = this.#byId.hold(id);
    return () => {
      release();
      this.used(id);
    };
  }

  /** A sandbox that is to lie on it is being made. */
  keep(name: string): () => void {
    return this.#byName.hold(name);
  }

  /** Those that nothing of this node lies on or waits for. */
  idle(): PulledImage[] {
    const images = new Map<string, { id: string; names: string[]; usedMs: number }>();
    for (const [name, { id, usedMs }] of this.#entries) {
      const image = images.get(id) ?? { id, names: [], usedMs: 0 };
      images.set(id, { id, names: [...image.names, name], usedMs: Math.max(image.usedMs, usedMs) });
    }
    return [...images.values()].filter(
      ({ id, names }) => !this.#byId.has(id) && !names.some((name) => this.#byName.has(name)),
    );
  }

  /** Nobody is told that an image is there while `work` removes one. */
  async removing<T>(work: () => Promise<T>): Promise<T> {
    const removal = work();
    this.#removal = removal.catch(() => {});
    return await removal;
  }

  /** Wait for the removal of an image. */
  async settled(): Promise<void> {
    await this.#removal;
  }

  forget(name: string): void {
    this.#entries.delete(name);
    rmSync(this.#fileOf(name), { force: true });
  }

  /** To be asked for before the engine is. */
  get now(): PulledThen {
    return new Map(this.#entries);
  }

  /** The engine has these: what is missing was deleted by somebody, and is the operator's where it comes again. */
  forgetMissing(then: PulledThen, ids: ReadonlySet<string>): void {
    for (const [name, entry] of this.#entries) {
      if (then.get(name) === entry && !ids.has(entry.id)) this.forget(name);
    }
  }

  #fileOf(name: string): string {
    return join(this.#folder, sha256(name));
  }

  #read(file: string): void {
    const path = join(this.#folder, file);
    try {
      if (file.endsWith(PART)) throw new Error('it was not written to its end');
      const { name, id } = JSON.parse(readFileSync(path, 'utf8'));
      this.#entries.set(name, { id, usedMs: statSync(path).mtimeMs });
    } catch {
      // What a crash of the machine has torn says nothing: that image is the operator's from now on.
      rmSync(path, { force: true });
    }
  }
}
