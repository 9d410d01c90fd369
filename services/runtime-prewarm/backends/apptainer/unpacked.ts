// What image files were unpacked to, a folder each, with an empty file beside it whose time is that of the last use. A folder is
// whole once it has its name, and is none any more once it has lost it.
import { existsSync, readdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolders } from '../../../common/folders.ts';
import { newId } from '../../../common/ids.ts';
import { Holds } from '../../domain/holds.ts';
import { removeTree } from '../../host/box-folders.ts';
import type { IdleImage } from '../image-sweep.ts';

export class UnpackedImages {
  readonly #folder: string;
  readonly #uses: string;
  readonly #byKey = new Holds();
  readonly #byName = new Holds();

  /** `uses`: of the files that tell when each was used. */
  constructor(folder: string, uses: string) {
    this.#folder = folder;
    this.#uses = uses;
    makeFolders(uses);
  }

  /** What unpacks an image of that name, and as it is now. */
  static keyOf(name: string, { ino, size, mtimeMs }: { ino: number; size: number; mtimeMs: number }): string {
    return `${name}@${ino}-${size}-${mtimeMs}`;
  }

  has(key: string): boolean {
    return existsSync(join(this.#folder, key));
  }

  /** A whole folder becomes that of the key. */
  add(key: string, unpacked: string): void {
    this.used(key);
    renameSync(unpacked, join(this.#folder, key));
  }

  used(key: string): void {
    const file = join(this.#uses, key);
    const now = new Date();
    try {
      if (existsSync(file)) utimesSync(file, now, now);
      else writeFileSync(file, '');
    } catch {
      // Its disk is full, or read-only.
    }
  }

  /** A sandbox lies on it. */
  hold(key: string): () => void {
    const release = this.#byKey.hold(key);
    return () => {
      release();
      this.used(key);
    };
  }

  /** A sandbox is being made of whatever that name has been unpacked to. */
  keep(name: string): () => void {
    return this.#byName.hold(name);
  }

  /** Those that nothing lies on or waits for. */
  idle(): IdleImage[] {
    return this.keys()
      .filter((key) => !this.#isHeld(key))
      .map((key) => ({ name: key, usedMs: this.#usedMs(key), remove: () => this.#remove(key) }));
  }

  /** Delete all but these, and what was left in the middle. No sandbox is there yet. */
  async clear(wanted: readonly string[]): Promise<void> {
    for (const name of readdirSync(this.#folder)) {
      if (!wanted.includes(name)) await removeTree(join(this.#folder, name));
    }
    for (const name of readdirSync(this.#uses)) {
      if (!this.has(name)) rmSync(join(this.#uses, name), { force: true });
    }
  }

  keys(): string[] {
    return readdirSync(this.#folder).filter((name) => !name.startsWith('.'));
  }

  #isHeld(key: string): boolean {
    return this.#byKey.has(key) || this.#byName.has(key.slice(0, key.lastIndexOf('@')));
  }

  /** One of an earlier version has no such file. */
  #usedMs(key: string): number {
    const file = statSync(join(this.#uses, key), { throwIfNoEntry: false });
    return file?.mtimeMs ?? statSync(join(this.#folder, key), { throwIfNoEntry: false })?.ctimeMs ?? 0;
  }

  async #remove(key: string): Promise<boolean> {
    if (this.#isHeld(key)) return false;
    const going = join(this.#folder, newId('.going'));
    renameSync(join(this.#folder, key), going);
    rmSync(join(this.#uses, key), { force: true });
    await removeTree(going);
    return true;
  }
}
