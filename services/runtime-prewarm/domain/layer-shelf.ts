// Which prepared layers there are, who lies on them, and which go first where there is no room.

export interface LayerLimits {
  /** Of all layers of a backend together; 0: none are made. */
  readonly maxBytes: number;
  /** Kept free on their disk. */
  readonly freeBytes: number;
}

/** How their disk is asked, and a layer deleted. */
export interface ShelfDisk {
  freeBytes(): number;
  /** Too few inodes are left for one more. */
  lacksInodes(): boolean;
  remove(key: string): Promise<void>;
}

interface Entry {
  readonly bytes: number;
  usedMs: number;
  holders: number;
}

export class LayerShelf {
  readonly #limits: LayerLimits;
  readonly #disk: ShelfDisk;
  readonly #entries = new Map<string, Entry>();

  constructor(limits: LayerLimits, disk: ShelfDisk) {
    this.#limits = limits;
    this.#disk = disk;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  add(key: string, bytes: number, usedMs: number): void {
    this.#entries.set(key, { bytes, usedMs, holders: 0 });
  }

  /** It is gone. */
  drop(key: string): void {
    this.#entries.delete(key);
  }

  /** Keep a layer until what is returned is called, once or more often; undefined: there is none. */
  hold(key: string, nowMs: number): (() => void) | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    entry.holders++;
    entry.usedMs = nowMs;
    let isHeld = true;
    return () => {
      if (isHeld) entry.holders--;
      isHeld = false;
    };
  }

  /** Whether one more of that size may be made, where others go for it. */
  fits(bytes: number): boolean {
    return bytes <= this.#limits.maxBytes && !this.#isDiskShort();
  }

  /** False: something lies on it. */
  async removeIdle(key: string): Promise<boolean> {
    const entry = this.#entries.get(key);
    if (entry === undefined) return true;
    if (entry.holders > 0) return false;
    this.#entries.delete(key);
    await this.#disk.remove(key);
    return true;
  }

  /** Delete the longest unused of those that nothing lies on, until what is left fits. */
  async trim(keep?: string): Promise<void> {
    while (this.#isOverfull()) {
      const idle = [...this.#entries].filter(([key, { holders }]) => holders === 0 && key !== keep);
      const oldest = idle.reduce<(typeof idle)[0] | undefined>(
        (best, one) => (best === undefined || one[1].usedMs < best[1].usedMs ? one : best),
        undefined,
      );
      if (oldest === undefined) return;
      this.#entries.delete(oldest[0]);
      await this.#disk.remove(oldest[0]);
    }
  }

  #isOverfull(): boolean {
    const bytes = [...this.#entries.values()].reduce((sum, one) => sum + one.bytes, 0);
    return bytes > this.#limits.maxBytes || this.#isDiskShort();
  }

  #isDiskShort(): boolean {
    return this.#disk.freeBytes() < this.#limits.freeBytes || this.#disk.lacksInodes();
  }
}
