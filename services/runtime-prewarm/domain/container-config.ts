// What a container of ours is created with: nothing of its image runs but `cat`, which ends with its standard input.
import { SANDBOX_PIDS_MAX } from '../../common/limits.ts';
import type { SandboxLimits } from './plan.ts';

/** Labels by which everything of a manager can be found again. */
export const LABELS = {
  instance: 'polar.instance',
  runtime: 'polar.runtime',
  session: 'polar.session',
  /** Of an image that is a prepared layer: its key. Containers have it empty, and so have images that others make of them. */
  layer: 'polar.layer',
};

export interface ContainerOptions {
  /** Of the manager's data. */
  readonly instance: string;
  readonly runtimeId: string;
  readonly session: string;
  /** Digest: a tag may move. */
  readonly imageId: string;
  readonly limits: SandboxLimits;
  /** What gives it its GPUs, as parts of HostConfig. */
  readonly gpus: object;
  /** 0: no cap. */
  readonly storageMb: number;
  /** `uid:gid` of the first process: no command's own, so that none can end it. */
  readonly user: string;
  /** Of the security options: what follows `seccomp=`. */
  readonly seccomp: string;
  /** What its engine needs beside, as parts of HostConfig. */
  readonly more?: object;
}

/** As an engine lists it. */
export interface ListedContainer {
  readonly Id: string;
  /** None of one whose deletion was begun. */
  readonly Names: readonly string[] | null;
  readonly Labels: Readonly<Record<string, string>>;
  readonly State: string;
}

/** Nothing runs in it, and nothing will where its manager has ended. */
export const isIdle = ({ State }: ListedContainer): boolean =>
  ['created', 'exited', 'dead', 'removing', 'stopped', 'configured'].includes(State);

const CPU_PERIOD_US = 100_000;

/**
 * Whether it is a manager's: one that somebody runs of an image that was made of a sandbox has its labels, and another name.
 */
export const isSandbox = ({ Names, Labels }: ListedContainer): boolean =>
  (Names ?? []).length === 0 || Names?.includes(`/${Labels[LABELS.runtime]}`) === true;

/**
 * The lifeline: the first process reads a standard input that only the manager's connection holds open. However the
 * manager ends, the engine closes it, `cat` ends, the kernel kills the rest, and the engine deletes the container.
 */
export function containerConfig(options: ContainerOptions): object {
  return {
    Image: options.imageId,
    Entrypoint: ['cat'],
    Cmd: [],
    ...{ User: options.user, WorkingDir: '/', Hostname: 'sandbox', Env: [] },
    ...{ OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: false, AttachStderr: false },
    Healthcheck: { Test: ['NONE'] },
    Labels: {
      [LABELS.instance]: options.instance,
      [LABELS.runtime]: options.runtimeId,
      [LABELS.session]: options.session,
      [LABELS.layer]: '',
    },
    HostConfig: hostConfig(options),
  };
}

function hostConfig({ limits, gpus, storageMb, seccomp, more }: ContainerOptions): object {
  const { memoryBytes, cpus } = limits;
  return {
    // The init reaps what commands leave.
    ...{ Init: true, AutoRemove: true, NetworkMode: 'none', IpcMode: 'private', LogConfig: { Type: 'none' } },
    ...{ CapDrop: ['ALL'], SecurityOpt: ['no-new-privileges', `seccomp=${seccomp}`] },
    PidsLimit: SANDBOX_PIDS_MAX,
    ...(memoryBytes > 0 && { Memory: memoryBytes, MemorySwap: memoryBytes }),
    ...(cpus > 0 && {
      CpuPeriod: CPU_PERIOD_US,
      CpuQuota: Math.max(1_000, Math.round(cpus * CPU_PERIOD_US)),
    }),
    ...gpus,
    ...(storageMb > 0 && { StorageOpt: { size: `${storageMb}m` } }),
    ...more,
  };
}
