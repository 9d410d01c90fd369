// What engines that speak Docker's API do each in its own way: Docker here, Podman in ../podman.
import type { ContainerOptions } from '../../domain/container-config.ts';
import { containerSeccomp } from '../../domain/container-seccomp.ts';
import { deviceFilesOf, type GpuGrant } from '../../domain/gpus.ts';
import { type ContainerUsers, usersOf } from './users.ts';

/** Of GET /info. */
export interface EngineInfo {
  readonly OSType: string;
  readonly PidsLimit: boolean;
  readonly MemoryLimit: boolean;
  readonly SecurityOptions: readonly string[] | null;
  /** Where images and containers lie. */
  readonly DockerRootDir?: string;
  /** Podman has one. */
  readonly BuildahVersion?: string;
  /** Podman's: it runs as a user without rights, in a namespace of its own. */
  readonly Rootless?: boolean;
}

/** Of GET /exec/ID/json. */
export interface ExecState {
  readonly Running: boolean;
  /** Null, or with Podman 0, before the start. */
  readonly ExitCode: number | null;
  /** 0 before the start, and for ever where there was none; with Podman again after the end. */
  readonly Pid: number;
  /** True in Podman when it has ended. */
  readonly CanRemove: boolean;
}

/** What containers are made with. */
export type ContainerNeeds = Pick<ContainerOptions, 'seccomp' | 'more'>;

export interface Dialect {
  readonly name: 'docker' | 'podman';
  /** Whether images can be made of its containers, to be cloned. */
  readonly layers: boolean;
  /** Said where nobody listens. */
  readonly howToStart: string;
  /** Throws where another engine answers. */
  check(info: EngineInfo): void;
  users(info: EngineInfo): ContainerUsers;
  /** Parts of HostConfig that give a container so many GPUs; without a grant whichever the engine likes. */
  gpus(count: number, grant: GpuGrant | undefined): object;
  /** Called once for each start of the backend. */
  config(): ContainerNeeds;
  /** As tasks name it, by the tag that the engine tells. */
  imageName(tag: string): string;
  /** A command has ended, or it could not be started. */
  hasEnded(state: ExecState): boolean;
  /** Whether a command whose process was not seen was not started, by its code and what came in place of its output. */
  couldNotStart(code: number, said: string): boolean;
  /** A container is gone: end what the engine keeps of it. */
  forget(container: string): void;
}

export const docker: Dialect = {
  name: 'docker',
  layers: true,
  howToStart: 'start Docker',
  check({ BuildahVersion }) {
    if (BuildahVersion !== undefined) throw new Error('it is Podman: set gateway.nodes[].podman.socket');
  },
  users: ({ SecurityOptions }) => usersOf((SecurityOptions ?? []).includes('name=userns')),
  gpus(count, grant) {
    if (count === 0) return {};
    return grant?.asFiles ? filesFor(grant) : { DeviceRequests: [requestOf(count, grant)] };
  },
  config: () => ({ seccomp: containerSeccomp() }),
  imageName: (tag) => tag,
  hasEnded: ({ Running, ExitCode }) => !Running && ExitCode !== null,
  couldNotStart: () => true,
  forget() {},
};

/** Programs need the driver's libraries in their image then. */
export const filesFor = (grant: GpuGrant): object => ({
  Devices: deviceFilesOf(grant).map(([PathOnHost, PathInContainer]) => ({
    ...{ PathOnHost, PathInContainer, CgroupPermissions: 'rw' },
  })),
});

/** By their names of the Container Device Interface where all have one, else by those that NVIDIA's runtime knows. */
function requestOf(count: number, grant: GpuGrant | undefined): object {
  const Capabilities = [['gpu']];
  if (grant === undefined || grant.gpus.length === 0) return { Count: count, Capabilities };
  const names = grant.gpus.map(({ cdi }) => cdi).filter((name) => name !== undefined);
  if (names.length === grant.gpus.length) return { Driver: 'cdi', DeviceIDs: names };
  return { DeviceIDs: grant.gpus.map(({ id }) => id), Capabilities };
}
