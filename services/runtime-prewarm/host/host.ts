// What this machine allows, found out once: who we are, how processes are held together, how launchers start.
import { spawnSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { PolarError } from '../../common/errors.ts';
import { makeFoldersOf } from '../../common/folders.ts';
import { sha256 } from '../../common/ids.ts';
import { cgroupContainment } from '../containment/cgroups.ts';
import type { Containment } from '../containment/containment.ts';
import { basesOf, findHierarchies } from '../containment/hierarchies.ts';
import { supervisorContainment } from '../containment/supervisor.ts';
import type { MountRoot, ResolvedMount } from '../domain/mounts.ts';
import { FifoPool } from './fifos.ts';
import { type Guardian, startGuardian } from './guardian.ts';
import { mountsShown } from './shown-mounts.ts';
import { findPython, publicPath, SYSTEM_PATH } from './tools.ts';

/** Commands of a manager that is host root run as this user: far above any real one, with no right on the host. */
export const SANDBOX_UID = 200_000;
/** Users of an image lie at SANDBOX_UID and above. */
export const SANDBOX_UID_COUNT = 65_536;

export interface HostOptions {
  /** Folder of this node's data. */
  readonly dataDir: string;
  readonly imagesDir: string;
  readonly mountRoots: readonly MountRoot[];
  /** Search path for programs. */
  readonly path: string;
  /** Where container engines listen, those that there are. */
  readonly engineSockets: readonly string[];
}

export interface Host extends AsyncDisposable {
  /** Of the manager's data: names what it makes outside of them. */
  readonly instance: string;
  readonly isRoot: boolean;
  /** Owner of what a sandbox writes; undefined: this process. */
  readonly uid: number | undefined;
  readonly containment: Containment;
  readonly guardian: Guardian;
  readonly dataDir: string;
  readonly boxes: string;
  /** Prepared layers, on the disk of the boxes. */
  readonly layers: string;
  /** What is made of image files. */
  readonly unpacked: string;
  readonly fifos: FifoPool;
  readonly imagesDir: string;
  readonly mountRoots: readonly MountRoot[];
  /** Search path for programs of the host. */
  readonly path: string;
  /** The same for commands that are no manager's own. */
  readonly commandPath: string;
  readonly python: string;
  /** Where launchers find boxes, layers, images and mounts; undefined: at their host paths. */
  readonly stage: string | undefined;
  /** Where that lies on this host which is at a place of the stage. */
  pathOf(below: string): string;
  /** A box's folder as launchers see it. */
  boxSeen(id: string): string;
  /** A mount's source as launchers see it. */
  mountSeen(mount: ResolvedMount): string;
  /** Call before a launch with them: a folder may have been deleted and made anew, as a cache is where room is needed. */
  showMounts(mounts: readonly ResolvedMount[]): Promise<void>;
  /** Launch in the stage's mount namespace, as this user. */
  enterStage(): string[];
  /** The same as the user of sandboxes. */
  enterAsSandbox(): string[];
}

/** Names what a manager makes outside of its data, control groups among it. */
export const instanceOf = (dataDir: string): string => `polar-${sha256(realpathSync(dataDir)).slice(0, 12)}`;

/** Takes the lock of the data and clears what an earlier manager left. Throws INVALID_CONFIG, SANDBOX_FAILED. */
export async function openHost(options: HostOptions): Promise<Host> {
  const { dataDir, imagesDir, path } = options;
  const python = findPython(path);
  if (python === undefined) {
    throw new PolarError('SANDBOX_FAILED', 'no python3 on PATH: sandboxes need Python 3.9 or newer');
  }
  const isRoot = process.getuid?.() === 0;
  makeFoldersOf('data_dir', dataDir);
  makeFoldersOf('images_dir', imagesDir);
  const instance = instanceOf(dataDir);
  const stage = isRoot && canMount() ? `/run/${instance}` : undefined;
  const hierarchies = findHierarchies();
  const boxes = join(realpathSync(dataDir), 'boxes');
  const layers = join(realpathSync(dataDir), 'layers');
  makeFoldersOf('data_dir', layers, 0o711);
  const unpacked = join(realpathSync(dataDir), 'unpacked');
  makeFoldersOf('data_dir', unpacked, 0o711);
  const shown = new Map([
    ['boxes', boxes],
    ['layers', layers],
    ['unpacked', unpacked],
    ['images', realpathSync(imagesDir)],
    ...options.mountRoots.map(({ name, path }) => [name, path] as const),
  ]);
  const guardian = await startGuardian({
    lock: join(dataDir, 'runtime-prewarm.lock'),
    ...{ boxes, stage, shown },
    groupBases: basesOf(hierarchies, instance),
    ...{ python, sockets: options.engineSockets, instance },
  });
  // Not before: the guardian of an earlier manager removes the groups at its end, and has the lock until then.
  const containment = cgroupContainment(instance, hierarchies) ?? supervisorContainment(python);
  const uid = isRoot ? SANDBOX_UID : undefined;
  const fifos = new FifoPool(join(boxes, '.fifos'), uid);
  const nsenter = ['nsenter', `--mount=/proc/${guardian.pid}/ns/mnt`];
  const drop = ['setpriv', '--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups', '--'];
  return {
    ...options,
    instance,
    isRoot,
    uid,
    containment,
    guardian,
    boxes,
    layers,
    unpacked,
    fifos,
    python,
    commandPath: isRoot ? publicPath(path) : path,
    stage,
    pathOf(below) {
      const [name = '', ...rest] = below.split('/');
      return join(shown.get(name) ?? '', ...rest);
    },
    boxSeen: (id) => (stage === undefined ? join(boxes, id) : join(stage, 'boxes', id)),
    mountSeen: ({ root, below, source }) => (stage === undefined ? source : join(stage, root, below)),
    showMounts: mountsShown({ guardianPid: guardian.pid, path: stage, shown }),
    enterStage: () => (stage === undefined ? [] : [...nsenter, '--']),
    enterAsSandbox() {
      if (stage !== undefined) return [...nsenter, '-S', `${uid}`, '-G', `${uid}`, '--'];
      return isRoot ? drop : [];
    },
    async [Symbol.asyncDispose]() {
      await fifos.close();
      await guardian.close();
    },
  };
}

/** Root of a container may lack the right to mount. */
function canMount(): boolean {
  const args = ['--mount', '--propagation', 'slave', 'mount', '-t', 'tmpfs', 'probe', '/run'];
  return spawnSync('unshare', args, { env: { PATH: SYSTEM_PATH }, stdio: 'ignore' }).status === 0;
}
