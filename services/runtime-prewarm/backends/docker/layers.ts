// Prepared layers of a container engine: images that are made of containers. They live as long as their manager, as what an
// engine had not written down when the machine stopped may be torn; and each manager has its own.
import { LAYERS_CHECK_MS } from '../../../common/limits.ts';
import { LABELS } from '../../domain/container-config.ts';
import { type LayerLimits, LayerShelf } from '../../domain/layer-shelf.ts';
import { lacksInodesAt, roomOf } from '../../host/node-disk.ts';
import { type Engine, EngineError } from './engine.ts';
import { isLayer, type ListedImage } from './images.ts';

/** A preparation that takes less is run again: making an image takes a tenth of a second at least. */
const WORTH_MS = 500;
/** Making an image; then there is none. */
const COMMIT_MS = 120_000;

/** Held from before a container is made of it until that is gone. */
export interface LayerImage {
  readonly imageId: string;
  release(): void;
}

/** Called once for what cannot be deleted; each look tries it again. */
export type OnStuck = (what: 'image' | 'container', id: string, error: unknown) => void;

interface Measured {
  /** What the container is made of. */
  readonly Image: string;
  /** Written on top of its image. */
  readonly SizeRw?: number;
  /** An image's volumes are no part of the container's own files. */
  readonly Mounts: readonly { readonly Type: string }[];
}

export class DockerLayers implements Disposable {
  readonly worthMs = WORTH_MS;
  readonly #engine: Engine;
  readonly #instance: string;
  readonly #shelf: LayerShelf;
  readonly #ids = new Map<string, string>();
  /** The image that each lies on. */
  readonly #bases = new Map<string, string>();
  readonly #making = new Set<string>();
  readonly #onStuck: OnStuck;
  /** Images that could not be deleted, and were told. */
  readonly #stuck = new Set<string>();
  /** The engine's folder, as this process sees it; undefined: it does not. */
  #rootDir: string | undefined;
  readonly #timer = setInterval(() => void this.#shelf.trim().catch(() => {}), LAYERS_CHECK_MS).unref();

  constructor(engine: Engine, instance: string, limits: LayerLimits, onStuck: OnStuck) {
    this.#engine = engine;
    this.#instance = instance;
    this.#onStuck = onStuck;
    this.#shelf = new LayerShelf(limits, {
      freeBytes: () => roomOf(this.#rootDir ?? '')?.freeBytes ?? Number.POSITIVE_INFINITY,
      lacksInodes: () => lacksInodesAt(this.#rootDir ?? ''),
      remove: (key) => this.#remove(key),
    });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  /** Whose free space counts. */
  keptIn(rootDir: string): void {
    this.#rootDir = rootDir;
  }

  has(key: string): boolean {
    return this.#shelf.has(key);
  }

  /** Hold a layer; undefined: there is none. */
  take(key: string): LayerImage | undefined {
    const imageId = this.#ids.get(key);
    if (imageId === undefined) return undefined;
    const release = this.#shelf.hold(key, Date.now());
    return release && { imageId, release };
  }

  /** Whether a layer that could not be used was deleted by somebody else; then it is none any more. */
  async isGone(key: string): Promise<boolean> {
    try {
      await this.#engine.call('GET', `/images/${this.#ids.get(key)}/json`);
      return false;
    } catch (error) {
      if (!(error instanceof EngineError && error.status === 404)) return false;
      this.#shelf.drop(key);
      this.#ids.delete(key);
      this.#bases.delete(key);
      return true;
    }
  }

  /** Make the files of a container an image. Its size in bytes; 0: there is no room, or the engine cannot within `limitMs`. */
  async add(key: string, container: string, signal: AbortSignal, limitMs: number): Promise<number> {
    const commitMs = Math.ceil(Math.min(Math.max(0, limitMs), COMMIT_MS));
    const limit = AbortSignal.any([signal, AbortSignal.timeout(commitMs)]);
    this.#making.add(key);
    try {
      const measured = await this.#sizeOf(container, limit);
      if (measured === undefined || !this.#shelf.fits(measured.bytes)) return 0;
      const { bytes, base } = measured;
      // Nothing runs in it that writes, so it need not be stopped meanwhile.
      const label = encodeURIComponent(`LABEL ${LABELS.layer}=${key}`);
      const path = `/commit?container=${container}&repo=${this.#repository}&tag=${key}&pause=false&changes=${label}`;
      const { Id } = await this.#engine.call<{ Id: string }>('POST', path, {
        body: this.#about(key),
        signal: limit,
        limitMs: COMMIT_MS,
      });
      this.#ids.set(key, wholeId(Id));
      this.#bases.set(key, base);
      this.#shelf.add(key, bytes, Date.now());
      await this.#shelf.trim(key);
      return bytes;
    } catch (error) {
      signal.throwIfAborted();
      // An image can have so many layers and no more; the engine can have no room, or be slow. The container can be used.
      if (error instanceof EngineError || limit.aborted) return 0;
      throw error;
    } finally {
      this.#making.delete(key);
    }
  }

  /** Delete all that lie on an image. False: something lies on one of them. */
  async removeOn(base: string): Promise<boolean> {
    const keys = [...this.#bases].filter(([, one]) => one === base).map(([key]) => key);
    const removed = await Promise.all(keys.map((key) => this.#shelf.removeIdle(key)));
    return removed.every(Boolean);
  }

  /** Of all images, delete those of this manager that it does not know: an earlier one made them, or they came too late. */
  async reap(all: readonly ListedImage[]): Promise<void> {
    for (const { Id, RepoTags, Labels } of all) {
      if (!isLayer({ Labels }) || Labels?.[LABELS.instance] !== this.#instance) continue;
      // Looked at now: one that was coming as they were listed may have come while another was deleted.
      if ([...this.#ids.values()].includes(Id)) continue;
      const isComing = RepoTags?.some((tag) => this.#making.has(tag.split(':').at(-1) ?? ''));
      if (!isComing) await this.#delete(Id);
    }
  }

  get #repository(): string {
    return `${this.#instance}/layer`;
  }

  /** What the container says of itself is no part of the image. Podman takes labels as changes alone. */
  #about(key: string): object {
    const { instance, runtime, session, layer } = LABELS;
    return { Labels: { [instance]: this.#instance, [runtime]: '', [session]: '', [layer]: key } };
  }

  /** Undefined: an image of it would not hold all. */
  async #sizeOf(
    container: string,
    signal: AbortSignal,
  ): Promise<{ bytes: number; base: string } | undefined> {
    const path = `/containers/${container}/json?size=true`;
    const { Image, SizeRw, Mounts } = await this.#engine.call<Measured>('GET', path, {
      signal,
      limitMs: COMMIT_MS,
    });
    if (Mounts.some(({ Type }) => Type !== 'bind')) return undefined;
    return { bytes: Math.max(1, SizeRw ?? 1), base: wholeId(Image) };
  }

  async #remove(key: string): Promise<void> {
    const id = this.#ids.get(key);
    this.#ids.delete(key);
    this.#bases.delete(key);
    if (id !== undefined) await this.#delete(id);
  }

  /** One that stays is nobody's layer any more, so that the next look finds it; it is in nobody's way but the disk's. */
  async #delete(id: string): Promise<void> {
    try {
      await removeImage(this.#engine, id);
      this.#stuck.delete(id);
    } catch (error) {
      if (!this.#stuck.has(id)) this.#onStuck('image', id, error);
      this.#stuck.add(id);
    }
  }
}

/** Podman leaves the head out here and nowhere else. */
const wholeId = (id: string): string => (id.startsWith('sha256:') ? id : `sha256:${id}`);

/** 404 and 409: it is gone, or a container that is going lies on it; then the next look finds it. */
async function removeImage(engine: Engine, id: string): Promise<void> {
  try {
    await engine.call('DELETE', `/images/${id}`);
  } catch (error) {
    if (!(error instanceof EngineError && [404, 409].includes(error.status))) throw error;
  }
}
