// The bubblewrap backend: own root, own namespaces, no network but the LLM proxy.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { asPolarError, PolarError } from '../../../common/errors.ts';
import type { LayerLimits } from '../../domain/layer-shelf.ts';
import { type SeccompArch, seccompProgram } from '../../domain/seccomp.ts';
import { removeTree } from '../../host/box-folders.ts';
import type { ProxyConnect } from '../../host/forward.ts';
import type { Host } from '../../host/host.ts';
import { NetnsBroker } from '../../host/netns-broker.ts';
import { findTool } from '../../host/tools.ts';
import type { Backend, BackendState, Box, BoxSpec, Layers } from '../backend.ts';
import { probe } from '../probe.ts';
import { createHostBox, groundOfHost, hostIdentity } from './host-box.ts';
import { HOST_IMAGE, type Images, imagesOf } from './images.ts';
import { type Layer, LayerStore } from './layer-store.ts';
import { type Ground, OverlayBox } from './overlay-box.ts';
import { type BubblewrapParts, bubblewrapParts } from './parts.ts';

export type OpenedBackend = BackendState & AsyncDisposable;

const ARCHES: readonly string[] = ['x64', 'arm64'] satisfies SeccompArch[];
const HOW =
  'install bubblewrap (apt install bubblewrap, dnf install bubblewrap), or set runtime.backend to process, which isolates nothing';

/** Probes by running a command in a sandbox: what it answers is what tasks would get. */
export async function openBubblewrap(
  host: Host,
  dataDir: string,
  proxy: ProxyConnect,
  layerLimits: LayerLimits,
): Promise<OpenedBackend> {
  const layers = new LayerStore(host.layers, layerLimits);
  const broker = new NetnsBroker(host.python, !host.isRoot);
  const base = { name: 'bubblewrap', isolates: true } as const;
  const dispose = async (): Promise<void> => {
    layers[Symbol.dispose]();
    await broker[Symbol.asyncDispose]();
  };
  try {
    const bwrap = bwrapOf(host);
    const seccompFile = join(dataDir, 'seccomp.bpf');
    writeFileSync(seccompFile, seccompProgram(process.arch as SeccompArch));
    const parts = bubblewrapParts(host, bwrap, layers, seccompFile, broker, proxy);
    const backend = backendOf(parts, layerLimits.maxBytes > 0);
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

function backendOf(parts: BubblewrapParts, isLayered: boolean): Backend {
  const images = imagesOf(parts.host);
  const { stage } = parts.host;
  return {
    name: 'bubblewrap',
    isolates: true,
    images: () => images.names(),
    fetches: false,
    // Overlays need the right to mount.
    ...(isLayered && stage !== undefined && { layers: layersOf(parts, images) }),
    async create(spec) {
      const image = spec.image || HOST_IMAGE;
      await images.prepare(image);
      return await made(parts, spec, () =>
        image === HOST_IMAGE
          ? createHostBox(parts, spec)
          : OverlayBox.create(parts, spec, groundOfImage([`images/${image}`])),
      );
    },
  };
}

function layersOf(parts: BubblewrapParts, images: Images): Layers {
  return {
    worthMs: 0,
    keepsFirst: false,
    areFree: true,
    has: (key) => parts.layers.has(key),
    async identityOf(image) {
      if (image === '' || image === HOST_IMAGE) return hostIdentity();
      await images.prepare(image);
      return images.identityOf(image);
    },
    async clone(key, spec) {
      const layer = parts.layers.take(key);
      if (layer === undefined) return undefined;
      const image = spec.image || HOST_IMAGE;
      const lower = `layers/${layer.path}`;
      const ground =
        image === HOST_IMAGE
          ? groundOfHost(layer, [lower])
          : groundOfImage([lower, `images/${image}`], layer);
      try {
        return await made(parts, spec, () => OverlayBox.create(parts, spec, ground));
      } catch (error) {
        layer.release();
        throw error;
      }
    },
  };
}

const groundOfImage = (lowers: readonly string[], layer?: Layer): Ground => ({
  ...{ lowers, readOnly: [], readOnlyTry: [], covered: ['proc', 'dev'] },
  ...(layer && { layer }),
});

/** Leaves nothing behind where the sandbox cannot be made. */
async function made(parts: BubblewrapParts, { id }: BoxSpec, make: () => Promise<Box>): Promise<Box> {
  try {
    return await make();
  } catch (error) {
    await removeTree(join(parts.host.boxes, id));
    throw error;
  }
}

const unusable = (why: string): PolarError => new PolarError('BACKEND_UNAVAILABLE', why);
