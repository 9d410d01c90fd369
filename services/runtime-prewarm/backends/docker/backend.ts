// The backends docker and podman: containers of an engine on this machine, by its API. The engine may come and go.

import { join } from 'node:path';
import { sleep } from '../../../common/clock.ts';
import { asPolarError, PolarError } from '../../../common/errors.ts';
import { DOCKER_LOOK_MS, DOCKER_PAUSE_MS, DOCKER_RETURN_MS } from '../../../common/limits.ts';
import { isIdle, isSandbox, LABELS, type ListedContainer } from '../../domain/container-config.ts';
import type { LayerLimits } from '../../domain/layer-shelf.ts';
import type { Watermarks } from '../../domain/watermarks.ts';
import type { ProxyConnect } from '../../host/forward.ts';
import type { Host } from '../../host/host.ts';
import { NetnsBroker } from '../../host/netns-broker.ts';
import type { Backend, BackendState, Box, BoxSpec, Layers } from '../backend.ts';
import { ImageSweep, type SweepEvents } from '../image-sweep.ts';
import { DockerBox, type DockerParts } from './box.ts';
import { removeContainer } from './container.ts';
import type { Dialect, EngineInfo } from './dialect.ts';
import { Engine } from './engine.ts';
import { Forgotten } from './forgotten.ts';
import { type DockerImages, dockerImages } from './images.ts';
import { DockerLayers, type OnStuck } from './layers.ts';
import { PulledImages } from './pulled.ts';
import { removePulled } from './remove-pulled.ts';

export interface DockerOptions {
  readonly dialect: Dialect;
  readonly host: Host;
  readonly proxy: ProxyConnect;
  /** Unix socket of the engine. */
  readonly socket: string;
  /** Fetch images that are missing. */
  readonly pull: boolean;
  readonly layers: LayerLimits;
  readonly marks: Watermarks;
  readonly sweepEvents: SweepEvents;
  readonly onStuck: OnStuck;
  /** Called while nothing is left of sandboxes that nobody has. */
  readonly onNothingLeft: () => void;
  /** Called when it begins to work, and when it stops to. */
  readonly onChange: (state: BackendState) => void;
}

export interface OpenedDocker extends AsyncDisposable {
  readonly state: BackendState;
}

/** Deletes what an earlier manager left, and looks for such all the time. */
export async function openDocker(options: DockerOptions): Promise<OpenedDocker> {
  const watch = new DockerWatch(options);
  await watch.look();
  const stop = new AbortController();
  const looking = watch.run(stop.signal);
  return {
    get state() {
      return watch.state;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await looking;
      await watch.close();
    },
  };
}

class DockerWatch {
  state: BackendState;
  readonly #options: DockerOptions;
  readonly #base: { readonly name: Dialect['name']; readonly isolates: true };
  readonly #engine: Engine;
  readonly #broker: NetnsBroker;
  readonly #pulled: PulledImages;
  readonly #images: DockerImages;
  readonly #sweep: ImageSweep;
  readonly #layers: DockerLayers;
  readonly #forgotten: Forgotten;
  readonly #live = new Set<string>();
  /** Containers that could not be deleted, and were told. */
  readonly #stuck = new Set<string>();
  #imageNames: readonly string[] = [];
  /** Where the engine keeps what it has; undefined: it has not said so. */
  #rootDir: string | undefined;

  constructor(options: DockerOptions) {
    const { dialect, host, socket, pull, layers, marks, sweepEvents } = options;
    this.#options = options;
    this.#base = { name: dialect.name, isolates: true };
    this.state = { ...this.#base, unavailable: this.#unavailable('it was not looked for yet') };
    this.#engine = new Engine(socket);
    this.#forgotten = new Forgotten(join(host.dataDir, `${dialect.name}-containers`));
    this.#engine.onBroken = () => this.#forgotten.engineWent();
    this.#broker = new NetnsBroker(host.python, false);
    this.#pulled = new PulledImages(join(host.dataDir, `${dialect.name}-images`));
    this.#images = dockerImages(this.#engine, dialect, pull, this.#pulled);
    this.#layers = new DockerLayers(this.#engine, host.instance, layers, options.onStuck);
    const parts = { engine: this.#engine, pulled: this.#pulled, layers: this.#layers };
    this.#sweep = new ImageSweep({
      ...{ backend: dialect.name, marks, events: sweepEvents, folder: () => this.#rootDir },
      count: () => this.#pulled.now.size,
      idle: () =>
        this.#pulled.idle().map((image) => ({
          ...{ name: image.names.join(', '), usedMs: image.usedMs },
          remove: () => removePulled(parts, image),
        })),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(DOCKER_LOOK_MS, signal);
      if (signal.aborted) return;
      const before = 'backend' in this.state;
      await this.look();
      if ('backend' in this.state !== before) this.#options.onChange(this.state);
    }
  }

  /** Is the engine there; delete containers of ours that nobody has. */
  async look(): Promise<void> {
    try {
      if (!this.#options.host.isRoot) throw new Error('this process is not root, which it needs');
      await this.#reap();
      const pulled = this.#pulled.now;
      const images = await this.#images.list();
      this.#pulled.forgetMissing(pulled, new Set(images.map(({ Id }) => Id)));
      this.#imageNames = this.#images.namesOf(images);
      await this.#layers.reap(images);
      // Not waited for: what is large takes long to delete.
      void this.#sweep.run();
      if (!('backend' in this.state)) this.state = { ...this.#base, backend: await this.#backend() };
    } catch (error) {
      this.state = { ...this.#base, unavailable: this.#unavailable(this.#why(error)) };
    }
  }

  async close(): Promise<void> {
    this.#layers[Symbol.dispose]();
    this.#engine.close();
    await this.#sweep.close();
    await this.#forgotten.end(this.#forgotten.begun, new Set());
    await this.#broker[Symbol.asyncDispose]();
  }

  async #reap(): Promise<void> {
    const { begun } = this.#forgotten;
    const label = [`${LABELS.instance}=${this.#options.host.instance}`];
    const filters = encodeURIComponent(JSON.stringify({ label }));
    const listed = await this.#engine.call<ListedContainer[]>(
      'GET',
      `/containers/json?all=true&filters=${filters}`,
    );
    const all = listed.filter(isSandbox);
    const nobodys = all.filter(({ Labels }) => !this.#live.has(Labels[LABELS.runtime] ?? ''));
    const known = new Set(all.map(({ Id }) => Id));
    // Docker 20 may list one that it has deleted already, until it ends.
    for (const id of await Promise.all(nobodys.map(({ Id }) => this.#deleted(Id)))) known.delete(id ?? '');
    await this.#forgotten.end(begun, known);
    if (nobodys.every(isIdle) && this.#forgotten.begun.every((id) => known.has(id))) {
      this.#options.onNothingLeft();
    }
    for (const id of this.#stuck) if (!nobodys.some(({ Id }) => Id === id)) this.#stuck.delete(id);
  }

  /** The container where it is gone. One that an engine cannot delete, as it is busy or broken, keeps nobody from the others. */
  async #deleted(id: string): Promise<string | undefined> {
    try {
      const became = await removeContainer(this.#engine, id);
      this.#options.dialect.forget(id);
      return became === 'gone' ? id : undefined;
    } catch (error) {
      if (!this.#stuck.has(id)) this.#options.onStuck('container', id, error);
      this.#stuck.add(id);
      return undefined;
    }
  }

  async #backend(): Promise<Backend> {
    const { host, proxy, dialect, layers } = this.#options;
    const info = await this.#engine.call<EngineInfo>('GET', '/info');
    dialect.check(info);
    if (info.OSType !== 'linux') throw new Error(`its containers are those of ${info.OSType}`);
    if (!info.PidsLimit || !info.MemoryLimit) throw new Error('it cannot limit memory and processes');
    this.#layers.keptIn(info.DockerRootDir ?? '');
    this.#rootDir = info.DockerRootDir;
    const parts: DockerParts = {
      ...{
        host,
        proxy,
        engine: this.#engine,
        broker: this.#broker,
        layers: this.#layers,
        forgotten: this.#forgotten,
      },
      ...{ dialect, users: dialect.users(info), config: dialect.config(), rootDir: info.DockerRootDir },
    };
    return {
      ...this.#base,
      images: () => [...this.#imageNames],
      fetches: this.#options.pull,
      gpus: 'from_creation',
      keep: (image) => this.#pulled.keep(image),
      ...(dialect.layers && layers.maxBytes > 0 && { layers: this.#layersOf(parts) }),
      create: async (spec, signal) => {
        const imageId = await this.#imageId(spec.image, signal);
        return await this.#create(parts, spec, imageId, signal, this.#pulled.hold(imageId));
      },
    };
  }

  #layersOf(parts: DockerParts): Layers {
    const layers = this.#layers;
    return {
      worthMs: layers.worthMs,
      keepsFirst: true,
      areFree: false,
      has: (key) => layers.has(key),
      identityOf: (image, signal) => this.#imageId(image, signal),
      clone: async (key, spec, signal, identity) => {
        await this.#answer(() => this.#engine.text('GET', '/_ping', { signal }), signal);
        const layer = layers.take(key);
        if (layer === undefined) return undefined;
        const base = this.#pulled.hold(identity);
        const release = (): void => {
          layer.release();
          base();
        };
        try {
          return await this.#create(parts, spec, layer.imageId, signal, release);
        } catch (error) {
          signal.throwIfAborted();
          if (await layers.isGone(key)) return undefined;
          throw error;
        }
      },
    };
  }

  async #create(
    parts: DockerParts,
    spec: BoxSpec,
    imageId: string,
    signal: AbortSignal,
    onRemoved: () => void,
  ): Promise<Box> {
    this.#live.add(spec.id);
    const released = (): void => {
      this.#live.delete(spec.id);
      onRemoved();
    };
    try {
      signal.throwIfAborted();
      const box = await DockerBox.create(parts, spec, imageId, released);
      this.#liveUntil(box.gone, spec.id);
      return box;
    } catch (error) {
      released();
      throw error;
    }
  }

  /** What is left of one that has ended is the reaper's: an engine that comes back may have tried to delete it in vain. */
  #liveUntil(gone: AbortSignal, id: string): void {
    const end = (): unknown => this.#live.delete(id);
    if (gone.aborted) end();
    else gone.addEventListener('abort', end, { once: true });
  }

  /** The digest that what is made of the image is made of. Throws IMAGE_NOT_FOUND, SANDBOX_FAILED. */
  #imageId(image: string, signal: AbortSignal): Promise<string> {
    return this.#answer(() => this.#images.find(image, signal), signal);
  }

  /** What it says. An engine that restarts is away for a moment. Throws SANDBOX_FAILED with the reason where it stays away. */
  async #answer<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const until = performance.now() + DOCKER_RETURN_MS;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof PolarError) throw error;
        const { message } = this.#unavailable(this.#why(error));
        if (performance.now() > until) throw new PolarError('SANDBOX_FAILED', message, { cause: error });
      }
      await sleep(DOCKER_PAUSE_MS, signal);
    }
  }

  #why(error: unknown): string {
    const { message } = asPolarError(error);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ECONNREFUSED') return message;
    const { dialect, socket } = this.#options;
    return `no engine answers at ${socket}: ${dialect.howToStart}, or set gateway.nodes[].${dialect.name}.socket`;
  }

  #unavailable(why: string): PolarError {
    return new PolarError('BACKEND_UNAVAILABLE', `${this.#options.dialect.name} cannot be used here: ${why}`);
  }
}
