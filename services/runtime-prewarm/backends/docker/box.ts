// A sandbox that is a container. It runs from its making to its removal; between two commands it holds its init and `cat`.

import { sleep } from '../../../common/clock.ts';
import { PolarError } from '../../../common/errors.ts';
import type { Command, CommandResult, OutputSink } from '../../domain/command.ts';
import type { ResolvedMount } from '../../domain/mounts.ts';
import type { FileWrite } from '../../domain/paths.ts';
import { SESSION_FOLDERS } from '../../domain/skeleton.ts';
import type { ProxyConnect } from '../../host/forward.ts';
import type { Host } from '../../host/host.ts';
import { mountInto } from '../../host/mount-into.ts';
import type { NetnsBroker } from '../../host/netns-broker.ts';
import type { BoxDisk } from '../../host/node-disk.ts';
import { getFile, makeFolder, putFiles, type RootedOptions } from '../../host/rooted-files.ts';
import type { Box, BoxSpec } from '../backend.ts';
import { type CommandNetwork, networkEnv, openNetwork } from '../network.ts';
import { proxyUrl } from '../proxy-port.ts';
import { Container } from './container.ts';
import type { ContainerNeeds, Dialect } from './dialect.ts';
import type { Engine } from './engine.ts';
import { execInContainer } from './exec.ts';
import type { Forgotten } from './forgotten.ts';
import type { DockerLayers } from './layers.ts';
import type { ContainerUsers } from './users.ts';

/** What all containers of a manager share. */
export interface DockerParts {
  readonly host: Host;
  readonly engine: Engine;
  readonly broker: NetnsBroker;
  readonly proxy: ProxyConnect;
  readonly dialect: Dialect;
  readonly layers: DockerLayers;
  readonly forgotten: Forgotten;
  readonly users: ContainerUsers;
  /** What this engine's containers are made with beside what all are. */
  readonly config: ContainerNeeds;
  /** Where it keeps containers, which this process may see; undefined: it does not say. */
  readonly rootDir: string | undefined;
}

/** Of commands that are no user of the image. */
const HOME = '/polar/home';
/** Between a call that an ending engine broke and the end of its lifeline. */
const LIFELINE_MS = 500;
const COVERED_FOLDERS = ['proc', 'dev', 'sys'];

export class DockerBox implements Box {
  readonly proxyUrl = proxyUrl;
  readonly filesNeedIdle = false;
  readonly disk?: BoxDisk;
  readonly #parts: DockerParts;
  readonly #container: Container;
  readonly #released: () => void;
  readonly #mounted = new Set<string>();

  private constructor(parts: DockerParts, container: Container, released: () => void) {
    this.#parts = parts;
    this.#released = released;
    this.#container = container;
    const { rootDir } = parts;
    if (rootDir) this.disk = { folder: rootDir, written: (signal) => container.written(signal) };
  }

  /** `released` is called when it is removed, or left to the reaper. */
  static async create(
    parts: DockerParts,
    spec: BoxSpec,
    imageId: string,
    released: () => void,
  ): Promise<DockerBox> {
    const { id, session, limits, storageMb } = spec;
    const gpus = parts.dialect.gpus(spec.gpus, spec.grant);
    const { own } = parts.users;
    const container = await Container.start(parts, {
      ...{ instance: parts.host.instance, runtimeId: id, session, imageId, limits, gpus, storageMb },
      ...{ user: `${own}:${own}`, ...parts.config },
    });
    const box = new DockerBox(parts, container, released);
    try {
      const folders = [...SESSION_FOLDERS.map((path) => `/${path}`), HOME];
      await box.#withRoot(async (files) => folders.map((path) => makeFolder(files, path)));
    } catch (error) {
      await box.remove().catch(() => {});
      throw error;
    }
    return box;
  }

  /** Aborts when its container has ended, or its engine has. */
  get gone(): AbortSignal {
    return this.#container.gone;
  }

  async exec(command: Command, sink: OutputSink, signal: AbortSignal): Promise<CommandResult> {
    const { engine, dialect, users } = this.#parts;
    const container = this.#container;
    container.gone.throwIfAborted();
    const uid = users.commands;
    const env = { LANG: 'C.UTF-8', ...(uid !== 0 && { HOME }), ...networkEnv(command), ...command.env };
    let network: CommandNetwork | undefined;
    try {
      await this.#mount(command.mounts);
      network = await openNetwork(this.#parts, container.pid, command);
      const ended = await execInContainer({ engine, dialect, container, command, env, uid }, sink, signal);
      return { ...ended, ...(await network.result()) };
    } catch (error) {
      throw await this.#why(error, signal);
    } finally {
      network?.close();
    }
  }

  async makeFolder(path: string): Promise<void> {
    await this.#withRoot(async (files) => makeFolder(files, path));
  }

  async putFiles(list: readonly FileWrite[], signal: AbortSignal): Promise<void> {
    await this.#withRoot((files) => putFiles(files, list, signal));
  }

  async getFile(path: string): Promise<Uint8Array> {
    return await this.#withRoot(async (files) => getFile(files, path));
  }

  async freeze(key: string, signal: AbortSignal, limitMs: number): Promise<number> {
    const { gone, id } = this.#container;
    try {
      return await this.#parts.layers.add(key, id, AbortSignal.any([signal, gone]), limitMs);
    } catch (error) {
      throw await this.#why(error, signal);
    }
  }

  async remove(): Promise<void> {
    try {
      await this.#container.remove();
    } finally {
      this.#released();
    }
  }

  /** An engine that ends breaks its calls and the lifeline, in either order. */
  async #why(error: unknown, signal: AbortSignal): Promise<unknown> {
    const { gone } = this.#container;
    if (!(error instanceof PolarError || signal.aborted)) await sleep(LIFELINE_MS, gone);
    return gone.aborted ? gone.reason : error;
  }

  /** What is shown stays until the container ends. */
  async #mount(mounts: readonly ResolvedMount[]): Promise<void> {
    const { host } = this.#parts;
    const missing = mounts.filter((one) => !this.#mounted.has(keyOf(one)));
    if (missing.length === 0) return;
    for (const { target } of missing) await this.makeFolder(target);
    await mountInto(host.python, this.#container.pid, missing);
    for (const one of missing) this.#mounted.add(keyOf(one));
  }

  async #withRoot<T>(work: (files: RootedOptions) => Promise<T>): Promise<T> {
    const { ownerUid } = this.#container;
    const uid = ownerUid + this.#parts.users.commands;
    return await this.#container.withRoot((root) => work({ root, uid, covered: COVERED_FOLDERS }));
  }
}

const keyOf = ({ source, target }: ResolvedMount): string => `${source}\0${target}`;
