// The docker backend: containers of an engine on this machine, by its API. The engine may come and go.

import { sleep } from '../../../common/clock.ts';
import { asPolarError, PolarError } from '../../../common/errors.ts';
import { DOCKER_LOOK_MS, DOCKER_PAUSE_MS, DOCKER_RETURN_MS } from '../../../common/limits.ts';
import { LABELS } from '../../domain/container-config.ts';
import { containerSeccomp } from '../../domain/container-seccomp.ts';
import type { ProxyConnect } from '../../host/forward.ts';
import type { Host } from '../../host/host.ts';
import { NetnsBroker } from '../../host/netns-broker.ts';
import type { Backend, BackendState, Box, BoxSpec } from '../backend.ts';
import { DockerBox, type DockerParts } from './box.ts';
import { removeContainer, usersOf } from './container.ts';
import { Engine } from './engine.ts';
import { type DockerImages, dockerImages } from './images.ts';

export interface DockerOptions {
  readonly host: Host;
  readonly proxy: ProxyConnect;
  /** Unix socket of the engine. */
  readonly socket: string;
  /** Fetch images that are missing. */
  readonly pull: boolean;
  /** Called when it begins to work, and when it stops to. */
  readonly onChange: (state: BackendState) => void;
}

export interface OpenedDocker extends AsyncDisposable {
  readonly state: BackendState;
}

interface EngineInfo {
  readonly OSType: string;
  readonly PidsLimit: boolean;
  readonly MemoryLimit: boolean;
  readonly SecurityOptions: readonly string[] | null;
}

const BASE = { name: 'docker', isolates: true } as const;

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
  state: BackendState = { ...BASE, unavailable: unavailable('it was not looked for yet') };
  readonly #options: DockerOptions;
  readonly #engine: Engine;
  readonly #broker: NetnsBroker;
  readonly #images: DockerImages;
  readonly #live = new Set<string>();
  #imageNames: readonly string[] = [];

  constructor(options: DockerOptions) {
    const { host, socket, pull } = options;
    this.#options = options;
    this.#engine = new Engine(socket);
    this.#broker = new NetnsBroker(host.python, false);
    this.#images = dockerImages(this.#engine, pull);
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
      if (!this.#options.host.isRoot) throw new Error('this process is not root, which docker needs');
      await this.#reap();
      this.#imageNames = await this.#images.list();
      if (!('backend' in this.state)) this.state = { ...BASE, backend: await this.#backend() };
    } catch (error) {
      this.state = { ...BASE, unavailable: unavailable(this.#why(error)) };
    }
  }

  async close(): Promise<void> {
    this.#engine.close();
    await this.#broker[Symbol.asyncDispose]();
  }

  async #reap(): Promise<void> {
    const label = [`${LABELS.instance}=${this.#options.host.instance}`];
    const filters = encodeURIComponent(JSON.stringify({ label }));
    const all = await this.#engine.call<{ Id: string; Labels: Record<string, string> }[]>(
      'GET',
      `/containers/json?all=true&filters=${filters}`,
    );
    const nobodys = all.filter(({ Labels }) => !this.#live.has(Labels[LABELS.runtime] ?? ''));
    await Promise.all(nobodys.map(({ Id }) => removeContainer(this.#engine, Id)));
  }

  async #backend(): Promise<Backend> {
    const info = await this.#engine.call<EngineInfo>('GET', '/info');
    if (info.OSType !== 'linux') throw new Error(`its containers are those of ${info.OSType}`);
    if (!info.PidsLimit || !info.MemoryLimit) throw new Error('it cannot limit memory and processes');
    const { host, proxy } = this.#options;
    const parts: DockerParts = {
      ...{ host, proxy, engine: this.#engine, broker: this.#broker, seccomp: containerSeccomp() },
      users: usersOf((info.SecurityOptions ?? []).includes('name=userns')),
    };
    return {
      ...BASE,
      images: () => [...this.#imageNames],
      create: (spec, signal) => this.#create(parts, spec, signal),
    };
  }

  async #create(parts: DockerParts, spec: BoxSpec, signal: AbortSignal): Promise<Box> {
    await this.#answered(signal);
    const imageId = await this.#images.find(spec.image, signal);
    signal.throwIfAborted();
    this.#live.add(spec.id);
    const released = (): unknown => this.#live.delete(spec.id);
    try {
      return await DockerBox.create(parts, spec, imageId, released);
    } catch (error) {
      released();
      throw error;
    }
  }

  /** An engine that restarts is away for a moment. Throws SANDBOX_FAILED with the reason where it stays away. */
  async #answered(signal: AbortSignal): Promise<void> {
    const until = performance.now() + DOCKER_RETURN_MS;
    for (;;) {
      try {
        await this.#engine.text('GET', '/_ping', { signal });
        return;
      } catch (error) {
        signal.throwIfAborted();
        const { message } = unavailable(this.#why(error));
        if (performance.now() > until) throw new PolarError('SANDBOX_FAILED', message, { cause: error });
      }
      await sleep(DOCKER_PAUSE_MS, signal);
    }
  }

  #why(error: unknown): string {
    const { message } = asPolarError(error);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ECONNREFUSED') return message;
    return `no engine answers at ${this.#options.socket}: start Docker, or set gateway.nodes[].docker.socket`;
  }
}

const unavailable = (why: string): PolarError =>
  new PolarError('BACKEND_UNAVAILABLE', `docker cannot be used here: ${why}`);
