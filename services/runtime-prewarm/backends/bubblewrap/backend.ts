// The bubblewrap backend: own root, own namespaces, no network but the LLM proxy.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { asPolarError, PolarError } from '../../../common/errors.ts';
import { bwrapArgs } from '../../domain/bwrap-args.ts';
import { unstartedExitCode } from '../../domain/bwrap-status.ts';
import { type SeccompArch, seccompProgram } from '../../domain/seccomp.ts';
import type { ProxyConnect } from '../../host/forward.ts';
import type { Host } from '../../host/host.ts';
import { NetnsBroker } from '../../host/netns-broker.ts';
import { findTool } from '../../host/tools.ts';
import type { OpenedBackend } from '../looked-for.ts';
import { probe } from '../probe.ts';
import { HOST_IMAGE, imagesOf } from './images.ts';
import type { Launcher } from './launch.ts';
import type { LayerStore } from './layer-store.ts';
import { boxParts } from './parts.ts';
import { rootedBackend } from './rooted.ts';

/** Of all backends with root file systems: they lie in one folder, under one limit. */
export interface SharedLayers {
  readonly store: LayerStore;
  readonly areMade: boolean;
}

const BASE_ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  USER: 'root',
  LANG: 'C.UTF-8',
};
const ARCHES: readonly string[] = ['x64', 'arm64'] satisfies SeccompArch[];
const HOW =
  'install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or set runtime.backend to process, which isolates nothing';

/** Probes by running a command in a sandbox: what it answers is what tasks would get. */
export async function openBubblewrap(
  host: Host,
  dataDir: string,
  proxy: ProxyConnect,
  layers: SharedLayers,
): Promise<OpenedBackend> {
  const broker = new NetnsBroker(host.python, !host.isRoot);
  const base = { name: 'bubblewrap', isolates: true } as const;
  const dispose = (): Promise<void> => broker[Symbol.asyncDispose]();
  try {
    const launcher = bwrapLauncher(bwrapOf(host), join(dataDir, 'seccomp.bpf'));
    const parts = boxParts(host, launcher, layers.store, broker, proxy);
    const backend = rootedBackend('bubblewrap', parts, imagesOf(host), layers.areMade);
    await probe(backend, HOST_IMAGE, '/');
    return { ...base, backend, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    const { message } = asPolarError(error);
    const unavailable = new PolarError('BACKEND_UNAVAILABLE', `bubblewrap cannot be used here: ${message}`);
    return { ...base, unavailable, [Symbol.asyncDispose]: dispose };
  }
}

function bwrapLauncher(bwrap: string, seccompFile: string): Launcher {
  writeFileSync(seccompFile, seccompProgram(process.arch as SeccompArch));
  return {
    name: 'bubblewrap',
    argv: [bwrap],
    seccompFile,
    baseEnv: BASE_ENV,
    args: (options, fds) =>
      bwrapArgs(options, fds)
        .map((arg) => `${arg}\0`)
        .join(''),
    exitCode: ({ exitCode }, { started, complaint }) =>
      exitCode ?? (started ? unstartedExitCode(complaint) : undefined),
  };
}

/** Throws BACKEND_UNAVAILABLE. */
export function refuseArch(): void {
  if (!ARCHES.includes(process.arch)) throw unusable(`no seccomp filter for ${process.arch}`);
}

function bwrapOf({ path, isRoot, stage }: Host): string {
  refuseArch();
  const bwrap = findTool('bwrap', path);
  if (bwrap === undefined) throw unusable(`no bwrap on PATH; ${HOW}`);
  if (isRoot && stage === undefined) throw unusable('this process is root but may not mount');
  return bwrap;
}

const unusable = (why: string): PolarError => new PolarError('BACKEND_UNAVAILABLE', why);
