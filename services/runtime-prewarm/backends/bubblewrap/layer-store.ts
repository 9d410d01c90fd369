// Prepared layers: what preparations wrote, kept read-only under the digest of what they were asked for. They are a cache that
// outlives this process; the longest unused go first where there is no room.
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statfsSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { newId } from '../../../common/ids.ts';
import { LAYERS_CHECK_MS } from '../../../common/limits.ts';
import { removeTree } from '../../host/box-folders.ts';
import { SYSTEM_PATH } from '../../host/tools.ts';

/** Held while a sandbox lies on it. */
export interface Layer {
  /** Below the folder of all layers. */
  readonly path: string;
  release(): void;
}

export interface LayerLimits {
  /** Of all layers together; 0: none are made. */
  readonly maxBytes: number;
  /** Kept free on their disk. */
  readonly freeBytes: number;
}

interface Entry {
  readonly bytes: number;
  usedMs: number;
  holders: number;
}

const ROOT = 'root';
const ABOUT = 'layer.json';
const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** A layer is complete once its folder has its key for a name: that is one rename, and the last step. */
export class LayerStore implements Disposable {
  readonly #folder: string;
  readonly #limits: LayerLimits;
  /** Of the machine: what it had not written down when it stopped may be torn, so earlier layers are not used. */
  readonly #machineBoot = readFileSync(BOOT_ID, 'utf8').trim();
  readonly #entries = new Map<string, Entry>();
  /** What cannot be deleted is tried again. */
  readonly #timer = setInterval(() => void this.#trim().catch(() => {}), LAYERS_CHECK_MS).unref();

  constructor(folder: string, limits: LayerLimits) {
    this.#folder = folder;
    this.#limits = limits;
    for (const name of readdirSync(folder)) {
      const entry = this.#read(name);
      if (entry === undefined) void removeTree(join(folder, name)).catch(() => {});
      else this.#entries.set(name, entry);
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  /** Hold a layer; undefined: there is none. */
  take(key: string): Layer | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    entry.holders++;
    entry.usedMs = Date.now();
    utimesSync(join(this.#folder, key, ABOUT), new Date(), new Date());
    return {
      path: join(key, ROOT),
      release() {
        entry.holders--;
      },
    };
  }

  /** Make a folder a layer by moving it. Its size in bytes; 0: there is no room for it, and nothing was done. */
  async add(key: string, written: string): Promise<number> {
    const bytes = await sizeOf(written);
    if (bytes > this.#limits.maxBytes || this.#freeBytes() < this.#limits.freeBytes) return 0;
    const making = join(this.#folder, newId('.making'));
    mkdirSync(making);
    writeFileSync(join(making, ABOUT), JSON.stringify({ bytes, boot: this.#machineBoot }));
    renameSync(written, join(making, ROOT));
    renameSync(making, join(this.#folder, key));
    this.#entries.set(key, { bytes, usedMs: Date.now(), holders: 0 });
    await this.#trim(key);
    return bytes;
  }

  /** What an earlier start left; undefined: it is not whole. */
  #read(name: string): Entry | undefined {
    if (name.startsWith('.')) return undefined;
    try {
      const about = join(this.#folder, name, ABOUT);
      const { bytes, boot } = JSON.parse(readFileSync(about, 'utf8'));
      if (boot !== this.#machineBoot || !statSync(join(this.#folder, name, ROOT)).isDirectory())
        return undefined;
      return { bytes, usedMs: statSync(about).mtimeMs, holders: 0 };
    } catch {
      return undefined;
    }
  }

  /** Delete the longest unused of those that nothing lies on, until what is left fits. */
  async #trim(keep?: string): Promise<void> {
    while (this.#isOverfull()) {
      const idle = [...this.#entries].filter(([key, { holders }]) => holders === 0 && key !== keep);
      const oldest = idle.reduce<(typeof idle)[0] | undefined>(
        (best, one) => (best === undefined || one[1].usedMs < best[1].usedMs ? one : best),
        undefined,
      );
      if (oldest === undefined) return;
      await this.#delete(oldest[0]);
    }
  }

  #isOverfull(): boolean {
    const bytes = [...this.#entries.values()].reduce((sum, one) => sum + one.bytes, 0);
    return bytes > this.#limits.maxBytes || this.#freeBytes() < this.#limits.freeBytes;
  }

  #freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.#folder);
    return bavail * bsize;
  }

  /** Not whole from the first step on. */
  async #delete(key: string): Promise<void> {
    this.#entries.delete(key);
    const going = join(this.#folder, newId('.going'));
    renameSync(join(this.#folder, key), going);
    await removeTree(going);
  }
}

/** On the disk; a sandbox's files can be many, so not in this process. */
async function sizeOf(folder: string): Promise<number> {
  const options = { env: { PATH: SYSTEM_PATH } };
  const { stdout } = await promisify(execFile)('du', ['-sx', '--block-size=1', folder], options);
  return Number.parseInt(stdout, 10);
}
