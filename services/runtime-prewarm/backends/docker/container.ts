// One running container: made with its lifeline, found in the host's process table, and removed.
import { closeSync, constants, openSync, readFileSync, statSync } from 'node:fs';
import type { Socket } from 'node:net';
import { asPolarError, PolarError } from '../../../common/errors.ts';
import { ContainerGroup, ENDED_AT_ONCE } from '../../containment/container-group.ts';
import { type ContainerOptions, containerConfig } from '../../domain/container-config.ts';
import type { DiskUse } from '../../domain/disk-room.ts';
import type { Dialect } from './dialect.ts';
import { type Engine, EngineError } from './engine.ts';
import type { Forgotten } from './forgotten.ts';

/** Where a container is. */
export interface ContainerEngine {
  readonly engine: Engine;
  readonly dialect: Dialect;
  readonly forgotten: Forgotten;
}

export class Container {
  readonly id: string;
  /** Of its first process, as the host numbers it. */
  readonly pid: number;
  readonly group: ContainerGroup;
  /** Aborts, with RUNTIME_LOST, when it has ended or its engine has. */
  readonly gone: AbortSignal;
  /** Owner of its files, as the host numbers it. */
  readonly ownerUid: number;
  readonly #at: ContainerEngine;
  readonly #lifeline: Socket;
  #ending = false;

  private constructor(at: ContainerEngine, id: string, lifeline: Socket, pid: number, group: ContainerGroup) {
    this.#at = at;
    this.#lifeline = lifeline;
    this.id = id;
    this.pid = pid;
    this.group = group;
    this.ownerUid = firstUidOf(pid);
    const gone = new AbortController();
    this.gone = gone.signal;
    const lost = (): void => {
      if (!this.#ending) at.forgotten.engineWent();
      gone.abort(containerEnded());
    };
    lifeline.once('close', lost).resume();
    if (lifeline.destroyed) lost();
  }

  /** Throws BACKEND_UNAVAILABLE for what the engine cannot do, SANDBOX_FAILED. */
  static async start(at: ContainerEngine, options: ContainerOptions): Promise<Container> {
    const { engine, dialect, forgotten } = at;
    let id: string | undefined;
    try {
      id = await createdContainer(engine, options.runtimeId, containerConfig(options));
      forgotten.begins(id);
      const lifeline = await engine.hijack(`/containers/${id}/attach?stream=1&stdin=1`);
      // Of one that is started already it is told so.
      await engine.call('POST', `/containers/${id}/start`, { repeatable: true });
      const { State } = await engine.call<{ State: { Pid: number } }>('GET', `/containers/${id}/json`);
      return new Container(at, id, lifeline, State.Pid, await ContainerGroup.of(State.Pid, id));
    } catch (error) {
      if (id !== undefined) await containerRemoved(engine, id).catch(() => {});
      throw startFailure(dialect.name, error);
    }
  }

  /** Work with its root from outside. Throws RUNTIME_LOST. */
  async withRoot<T>(work: (root: string) => Promise<T>): Promise<T> {
    this.gone.throwIfAborted();
    const fd = openSync(`/proc/${this.pid}/root`, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      this.#proveRoot(fd);
      return await work(`/proc/self/fd/${fd}`);
    } finally {
      closeSync(fd);
    }
  }

  /** On top of its image. */
  async written(signal: AbortSignal): Promise<DiskUse> {
    const path = `/containers/${this.id}/json?size=true`;
    const { SizeRw } = await this.#at.engine.call<{ SizeRw?: number }>('GET', path, { signal });
    return { bytes: SizeRw ?? 0, inodes: 0 };
  }

  /** Proves that nothing of it is left, also where the engine is away. */
  async end(): Promise<boolean> {
    this.#ending = true;
    this.#lifeline.destroy();
    return await this.group.endAll();
  }

  /** Throws where the engine cannot be asked; nothing of it runs then, and the reaper deletes it later. */
  async remove(): Promise<void> {
    await this.end();
    await containerRemoved(this.#at.engine, this.id);
    this.#at.dialect.forget(this.id);
  }

  /** The pid is still the container's after the folder was opened, so the folder is the container's; and no host's own. */
  #proveRoot(fd: number): void {
    const [inside, host] = [statSync(`/proc/self/fd/${fd}/`), statSync('/')];
    const groups = readFileSync(`/proc/${this.pid}/cgroup`, 'utf8');
    if (groups.includes(this.id) && (inside.dev !== host.dev || inside.ino !== host.ino)) return;
    throw new PolarError('RUNTIME_LOST', 'the container has ended');
  }
}

/** Its id. The name is its own alone: what has that when it is asked for a second time was made the first time. */
export async function createdContainer(engine: Engine, name: string, body: object): Promise<string> {
  try {
    const path = `/containers/create?name=${name}`;
    return (await engine.call<{ Id: string }>('POST', path, { body, repeatable: true })).Id;
  } catch (error) {
    if (!(error instanceof EngineError && error.isSecond && error.status === 409)) throw error;
    const found = await engine.call<{ Id: string }>('GET', `/containers/${name}/json`).catch(() => undefined);
    // Still being made.
    if (found === undefined) throw error;
    return found.Id;
  }
}

export const containerEnded = (): PolarError =>
  new PolarError('RUNTIME_LOST', 'the container has ended, or the engine that ran it');

/** 404 and 409: it is gone, or going, which the answer tells. */
export async function removeContainer(engine: Engine, id: string): Promise<'gone' | 'going'> {
  try {
    await engine.call('DELETE', `/containers/${id}?force=true&v=true`);
    return 'gone';
  } catch (error) {
    if (!(error instanceof EngineError && [404, 409].includes(error.status))) throw error;
    return error.status === 409 ? 'going' : 'gone';
  }
}

/** Resolves when it is gone: an engine deletes by itself what ends, and may be about to as it is asked to. */
export async function containerRemoved(engine: Engine, id: string): Promise<void> {
  if ((await removeContainer(engine, id)) === 'gone') return;
  try {
    await engine.call('POST', `/containers/${id}/wait?condition=removed`, { repeatable: true });
  } catch (error) {
    if (!(error instanceof EngineError && error.status === 404)) throw error;
  }
}

/** Host's number of the user 0 inside. */
function firstUidOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split(/\s+/)[1]);
}

/** What is asked for and cannot be had stays so; everything else may go better at the next try. */
function startFailure(name: string, error: unknown): PolarError {
  if (error instanceof PolarError) return error;
  const { message } = asPolarError(error);
  if (/could not select device driver|storage-opt|--storage/.test(message)) {
    const what = /device driver/.test(message) ? 'runtime.gpus' : 'runtime.storage_mb';
    return new PolarError('BACKEND_UNAVAILABLE', `${name} cannot give ${what} here: ${message}`);
  }
  if (error instanceof EngineError && error.status === 400 && !/executable file/.test(message)) {
    return new PolarError('BACKEND_UNAVAILABLE', `${name} refuses the sandbox: ${message}`);
  }
  if (error instanceof EngineError && error.status === 404 && /no such image/i.test(message)) {
    return new PolarError('SANDBOX_FAILED', `the image of the container was deleted meanwhile: ${message}`);
  }
  if (error instanceof EngineError && error.status === 404) {
    return new PolarError('BACKEND_UNAVAILABLE', ENDED_AT_ONCE);
  }
  return new PolarError('SANDBOX_FAILED', `the container could not be started: ${message}`);
}
