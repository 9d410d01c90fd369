// Images that a node has fetched or unpacked go where their disk is full, the longest unused first. The others are the
// operator's: they are not known here.
import { isAbove, longestUnused, type Watermarks } from '../domain/watermarks.ts';
import { roomOf } from '../host/node-disk.ts';

/** One that nothing lies on or waits for. */
export interface IdleImage {
  readonly name: string;
  readonly usedMs: number;
  /** False: it stays, as somebody else uses it. Throws where it cannot be asked. */
  remove(): Promise<boolean>;
}

export interface SweepEvents {
  removed(backend: string, image: string, unusedMs: number): void;
  /** The disk stays above the mark, and nothing more may go. */
  short(backend: string, folder: string): void;
}

export interface SweepOptions {
  readonly backend: string;
  readonly marks: Watermarks;
  readonly events: SweepEvents;
  /** On the disk of the images; undefined: this process does not see it. */
  readonly folder: () => string | undefined;
  readonly idle: () => readonly IdleImage[];
  /** Of those that could ever go. */
  readonly count: () => number;
}

export class ImageSweep {
  readonly #options: SweepOptions;
  #running: Promise<void> | undefined;
  #isToldShort = false;
  #isClosed = false;

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  /** Costs next to nothing while there is room. Never throws: what could not be removed is tried at the next call. */
  async run(): Promise<void> {
    this.#running ??= this.#sweep()
      .catch(() => {})
      .finally(() => {
        this.#running = undefined;
      });
    await this.#running;
  }

  /** Resolves when no removal is at work. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  async #sweep(): Promise<void> {
    const { backend, marks, events, folder, idle, count } = this.#options;
    const at = folder();
    if (at === undefined || !isAbove(roomOf(at), marks.highPercent)) {
      this.#isToldShort = false;
      return;
    }
    const staying = new Set<string>();
    while (!this.#isClosed && isAbove(roomOf(at), marks.lowPercent)) {
      const all = idle().filter(({ name }) => !staying.has(name));
      const image = longestUnused(all, Date.now(), marks.keepMs);
      if (image === undefined) break;
      if (await image.remove()) events.removed(backend, image.name, Date.now() - image.usedMs);
      else staying.add(image.name);
    }
    if (this.#isClosed || this.#isToldShort || count() === 0 || !isAbove(roomOf(at), marks.highPercent))
      return;
    this.#isToldShort = true;
    events.short(backend, at);
  }
}
