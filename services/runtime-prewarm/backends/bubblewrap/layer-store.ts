// Prepared layers: what preparations wrote, kept read-only under the digest of what they were asked for. They are a cache that
// outlives this process; the longest unused go first where there is no room.
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { newId } from '../../../common/ids.ts';
import { LAYERS_CHECK_MS } from '../../../common/limits.ts';
import { type LayerLimits, LayerShelf } from '../../domain/layer-shelf.ts';
import { removeTree } from '../../host/box-folders.ts';
import { bytesOf, lacksInodesAt, roomOf } from '../../host/node-disk.ts';

/** Held while a sandbox lies on it. */
export interface Layer {
  /** Below the folder of all layers. */
  readonly path: string;
  release(): void;
}

const ROOT = 'root';
const ABOUT = 'layer.json';
const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** A layer is complete once its folder has its key for a name: that is one rename, and the last step. */
export class LayerStore implements Disposable {
  readonly #folder: string;
  readonly #shelf: LayerShelf;
  /** Of the machine: what it had not written down when it stopped may be torn, so earlier layers are not used. */
  readonly #machineBoot = readFileSync(BOOT_ID, 'utf8').trim();
  /** What cannot be deleted is tried again. */
  readonly #timer = setInterval(() => void this.#shelf.trim().catch(() => {}), LAYERS_CHECK_MS).unref();

  constructor(folder: string, limits: LayerLimits) {
    this.#folder = folder;
    this.#shelf = new LayerShelf(limits, {
      freeBytes: () => roomOf(folder)?.freeBytes ?? 0,
      lacksInodes: () => lacksInodesAt(folder),
      remove: (key) => this.#delete(key),
    });
    const torn = readdirSync(folder).filter((name) => !this.#read(name));
    void this.#clear(torn.flatMap((name) => this.#trySetAside(name) ?? []));
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  has(key: string): boolean {
    return this.#shelf.has(key);
  }

  /** Hold a layer; undefined: there is none. */
  take(key: string): Layer | undefined {
    const release = this.#shelf.hold(key, Date.now());
    if (release === undefined) return undefined;
    if (isFolder(join(this.#folder, key, ROOT))) {
      this.#touch(key);
      return { path: join(key, ROOT), release };
    }
    this.#shelf.drop(key);
    // Not deleted before the next start: others may lie on what is left of it.
    this.#trySetAside(key);
    return undefined;
  }

  /** Make a folder a layer by moving it. Its size in bytes; 0: there is no room for it, and nothing was done. */
  async add(key: string, written: string): Promise<number> {
    const bytes = await bytesOf(written);
    if (!this.#shelf.fits(bytes)) return 0;
    const making = join(this.#folder, newId('.making'));
    mkdirSync(making);
    writeFileSync(join(making, ABOUT), JSON.stringify({ bytes, boot: this.#machineBoot }));
    renameSync(written, join(making, ROOT));
    renameSync(making, join(this.#folder, key));
    this.#shelf.add(key, bytes, Date.now());
    await this.#shelf.trim(key);
    return bytes;
  }

  /** One after the other: after a restart of the machine it is all there is. */
  async #clear(names: readonly string[]): Promise<void> {
    for (const name of names) await removeTree(join(this.#folder, name)).catch(() => {});
  }

  /** Take over what an earlier start left. False: it is not whole. */
  #read(name: string): boolean {
    if (name.startsWith('.')) return false;
    try {
      const about = join(this.#folder, name, ABOUT);
      const { bytes, boot } = JSON.parse(readFileSync(about, 'utf8'));
      const isWhole = boot === this.#machineBoot && statSync(join(this.#folder, name, ROOT)).isDirectory();
      if (isWhole) this.#shelf.add(name, bytes, statSync(about).mtimeMs);
      return isWhole;
    } catch {
      return false;
    }
  }

  async #delete(key: string): Promise<void> {
    await removeTree(join(this.#folder, this.#setAside(key)));
  }

  /** Not whole from now on, and out of the way of the next of its key. The name that it has then. */
  #setAside(name: string): string {
    const going = newId('.going');
    renameSync(join(this.#folder, name), join(this.#folder, going));
    return going;
  }

  /** Undefined: it stays as it is. */
  #trySetAside(name: string): string | undefined {
    try {
      return this.#setAside(name);
    } catch {
      return undefined;
    }
  }

  /** For the next start, which may do without. */
  #touch(key: string): void {
    try {
      utimesSync(join(this.#folder, key, ABOUT), new Date(), new Date());
    } catch {
      // Its disk is full, or read-only.
    }
  }
}

/** False where it is gone; what cannot be looked at may be there. */
function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch {
    return true;
  }
}
