// The bubblewrap backend: own root, own namespaces, no network but the LLM proxy.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { asPolarError, PolarError } from '../../../common/errors.ts';
import { type SeccompArch, seccompProgram } from '../../domain/seccomp.ts';
import type { ProxyAddress } from '../../host/forward.ts';
import type { Host } from '../../host/host.ts';
import { NetnsBroker } from '../../host/netns-broker.ts';
import { findTool } from '../../host/tools.ts';
import type { Backend, BackendState } from '../backend.ts';
import { probe } from '../probe.ts';
import { createHostBox } from './host-box.ts';
import { ImageBox } from './image-box.ts';
import { HOST_IMAGE, imagesOf } from './images.ts';
import { type BubblewrapParts, bubblewrapParts } from './parts.ts';

export type OpenedBackend = BackendState & AsyncDisposable;

const ARCHES: readonly string[] = ['x64', 'arm64'] satisfies SeccompArch[];
const HOW =
  'install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or set runtime.backend to process, which isolates nothing';

/** Probes by running a command in a sandbox: what it answers is what tasks would get. */
export async function openBubblewrap(
  host: Host,
  dataDir: string,
  proxy: ProxyAddress,
): Promise<OpenedBackend> {
  const broker = new NetnsBroker(host.python, !host.isRoot);
  const base = { name: 'bubblewrap', isolates: true } as const;
  const dispose = (): Promise<void> => broker[Symbol.asyncDispose]();
  try {
    const bwrap = bwrapOf(host);
    const seccompFile = join(dataDir, 'seccomp.bpf');
    writeFileSync(seccompFile, seccompProgram(process.arch as SeccompArch));
    const backend = backendOf(bubblewrapParts(host, bwrap, seccompFile, broker, proxy));
    await probe(backend, HOST_IMAGE, '/');
    return { ...base, backend, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    const { message } = asPolarError(error);
    const unavailable = new PolarError('BACKEND_UNAVAILABLE', `bubblewrap cannot be used here: ${message}`);
    return { ...base, unavailable, [Symbol.asyncDispose]: dispose };
  }
}

function bwrapOf({ path, isRoot, stage }: Host): string {
  if (!ARCHES.includes(process.arch)) throw unusable(`no seccomp filter for ${process.arch}`);
  const bwrap = findTool('bwrap', path);
  if (bwrap === undefined) throw unusable(`no bwrap on PATH; ${HOW}`);
  if (isRoot && stage === undefined) throw unusable('this process is root but may not mount');
  return bwrap;
}

function backendOf(parts: BubblewrapParts): Backend {
  const images = imagesOf(parts.host);
  return {
    name: 'bubblewrap',
    isolates: true,
    images: () => images.names(),
    async create(spec) {
      const image = spec.image || HOST_IMAGE;
      await images.prepare(image);
      return image === HOST_IMAGE ? createHostBox(parts, spec) : ImageBox.create(parts, { ...spec, image });
    },
  };
}

const unusable = (why: string): PolarError => new PolarError('BACKEND_UNAVAILABLE', why);
