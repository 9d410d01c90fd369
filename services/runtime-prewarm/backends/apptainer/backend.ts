// The apptainer backend: the sandboxes of bubblewrap, made by apptainer, and images in its own format.
//
// Each command has an apptainer of its own (its direct mode): an instance would keep processes between two commands.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { asPolarError, PolarError } from '../../../common/errors.ts';
import { apptainerLaunch, shellFailureExitCode } from '../../domain/apptainer-launch.ts';
import { launcherSeccomp } from '../../domain/container-seccomp.ts';
import { type SeccompArch, seccompProgram } from '../../domain/seccomp.ts';
import type { ProxyConnect } from '../../host/forward.ts';
import type { Host } from '../../host/host.ts';
import { NetnsBroker } from '../../host/netns-broker.ts';
import { findTool } from '../../host/tools.ts';
import { type OpenedBackend, refuseArch, type SharedLayers } from '../bubblewrap/backend.ts';
import { HOST_IMAGE } from '../bubblewrap/images.ts';
import type { Launcher } from '../bubblewrap/launch.ts';
import { type BoxParts, boxParts } from '../bubblewrap/parts.ts';
import { rootedBackend } from '../bubblewrap/rooted.ts';
import { probe } from '../probe.ts';
import { sifImages } from './images.ts';

const ENTER = join(import.meta.dirname, 'enter.py');
/** PATH is the image's. */
const BASE_ENV = { HOME: '/root', USER: 'root', LANG: 'C.UTF-8' };

/** Probes by running a command in a sandbox, as openBubblewrap does. */
export async function openApptainer(
  host: Host,
  dataDir: string,
  proxy: ProxyConnect,
  layers: SharedLayers,
): Promise<OpenedBackend> {
  const broker = new NetnsBroker(host.python, false);
  const base = { name: 'apptainer', isolates: true } as const;
  const dispose = (): Promise<void> => broker[Symbol.asyncDispose]();
  try {
    const program = programOf(host);
    const seccompFile = join(dataDir, 'seccomp-launcher.bpf');
    writeFileSync(seccompFile, seccompProgram(process.arch as SeccompArch, 'launcher'));
    const told = { path: program, seccomp: launcherSeccomp(), place: join(host.stage ?? '', 'root') };
    const partsWith = (keepsRights: boolean): BoxParts => {
      const launcher: Launcher = {
        ...{ name: 'apptainer', argv: [host.python, '-ISu', ENTER], seccompFile, baseEnv: BASE_ENV },
        args: (options, fds) => apptainerLaunch({ ...told, keepsRights }, options, fds),
        exitCode: ({ started }, { code, complaint }) => (started ? code : shellFailureExitCode(complaint)),
      };
      return boxParts(host, launcher, layers.store, broker, proxy);
    };
    const backend = rootedBackend('apptainer', partsWith(false), sifImages(partsWith(true)), layers.areMade);
    await probe(backend, HOST_IMAGE, '/');
    return { ...base, backend, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    const { message } = asPolarError(error);
    const unavailable = new PolarError('BACKEND_UNAVAILABLE', `apptainer cannot be used here: ${message}`);
    return { ...base, unavailable, [Symbol.asyncDispose]: dispose };
  }
}

function programOf({ path, stage }: Host): string {
  refuseArch();
  const program = findTool('apptainer', path);
  if (program === undefined) throw new PolarError('BACKEND_UNAVAILABLE', 'no apptainer on PATH');
  if (stage === undefined) {
    throw new PolarError('BACKEND_UNAVAILABLE', 'this process may not mount: runtime-prewarm has to be root');
  }
  return program;
}
