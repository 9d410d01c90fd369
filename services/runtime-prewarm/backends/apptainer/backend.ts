// The apptainer backend: the sandboxes of bubblewrap, made by apptainer, and images in its own format.
//
// Each command has an apptainer of its own (its direct mode): an instance would keep processes between two commands.
import { existsSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { asPolarError, PolarError } from '../../../common/errors.ts';
import { apptainerLaunch, placeBeside, shellFailureExitCode } from '../../domain/apptainer-launch.ts';
import { launcherSeccomp } from '../../domain/container-seccomp.ts';
import { type SeccompArch, seccompProgram } from '../../domain/seccomp.ts';
import type { ProxyConnect } from '../../host/forward.ts';
import type { Host } from '../../host/host.ts';
import { NetnsBroker } from '../../host/netns-broker.ts';
import { findTool } from '../../host/tools.ts';
import { refuseArch, type SharedLayers } from '../bubblewrap/backend.ts';
import { HOST_IMAGE } from '../bubblewrap/images.ts';
import type { Launcher } from '../bubblewrap/launch.ts';
import { type BoxParts, boxParts } from '../bubblewrap/parts.ts';
import { rootedBackend } from '../bubblewrap/rooted.ts';
import type { OpenedBackend } from '../looked-for.ts';
import { probe } from '../probe.ts';
import { sifImages } from './images.ts';
import type { UnpackedImages } from './unpacked.ts';

const ENTER = join(import.meta.dirname, 'enter.py');
/** Folders of every Linux. */
const NEUTRAL = ['/mnt', '/media', '/srv'];
/** PATH is the image's. */
const BASE_ENV = { HOME: '/root', USER: 'root', LANG: 'C.UTF-8' };

export interface ShownUnpacked {
  readonly shelf: UnpackedImages;
  /** Called when one more is there. */
  readonly onAdded: () => void;
}

/** Probes by running a command in a sandbox, as openBubblewrap does. */
export async function openApptainer(
  host: Host,
  dataDir: string,
  proxy: ProxyConnect,
  layers: SharedLayers,
  unpacked: ShownUnpacked,
): Promise<OpenedBackend> {
  const broker = new NetnsBroker(host.python, !host.isRoot);
  const base = { name: 'apptainer', isolates: true } as const;
  const dispose = (): Promise<void> => broker[Symbol.asyncDispose]();
  try {
    const program = programOf(host);
    const seccompFile = join(dataDir, 'seccomp-launcher.bpf');
    writeFileSync(seccompFile, seccompProgram(process.arch as SeccompArch, 'launcher'));
    const told = { path: program, seccomp: launcherSeccomp(), place: placeOf(host, program) };
    const partsWith = (keepsRights: boolean): BoxParts => {
      const launcher: Launcher = {
        ...{ name: 'apptainer', argv: [host.python, '-ISu', ENTER], seccompFile, baseEnv: BASE_ENV },
        args: (options, fds) => apptainerLaunch({ ...told, keepsRights }, options, fds),
        exitCode: ({ started }, { code, complaint }) => (started ? code : shellFailureExitCode(complaint)),
      };
      return boxParts(host, launcher, layers.store, broker, proxy);
    };
    const images = sifImages(partsWith(true), unpacked.shelf, unpacked.onAdded);
    const backend = rootedBackend('apptainer', partsWith(false), images, layers.areMade);
    await probe(backend, HOST_IMAGE, '/');
    return { ...base, backend, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    const { message } = asPolarError(error);
    const unavailable = new PolarError('BACKEND_UNAVAILABLE', `apptainer cannot be used here: ${message}`);
    return { ...base, unavailable, [Symbol.asyncDispose]: dispose };
  }
}

function programOf({ path, isRoot, stage }: Host): string {
  refuseArch();
  const program = findTool('apptainer', path);
  if (program === undefined) throw unusable('no apptainer on PATH');
  if (isRoot && stage === undefined) throw unusable('this process is root but may not mount');
  return program;
}

/** Where apptainer finds the root: a folder that says nothing of this host, and that nothing needed lies in. */
function placeOf({ stage, dataDir, imagesDir, mountRoots }: Host, program: string): string {
  if (stage !== undefined) return join(stage, 'root');
  const needed = [dataDir, imagesDir, program, import.meta.dirname, ...mountRoots.map(({ path }) => path)];
  const place = placeBeside(
    NEUTRAL.filter((one) => existsSync(one)),
    needed.map((path) => realpathSync(path)),
  );
  if (place !== undefined) return place;
  throw unusable(`a folder that nothing of the node lies in is needed: ${NEUTRAL.join(', ')}`);
}

const unusable = (why: string): PolarError => new PolarError('BACKEND_UNAVAILABLE', why);
