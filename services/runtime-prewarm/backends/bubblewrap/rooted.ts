// A backend whose sandboxes have a root file system of their own, for launchers that run a command in one.
import { join } from 'node:path';
import { abortable } from '../../../common/clock.ts';
import { PolarError } from '../../../common/errors.ts';
import { removeBox } from '../../host/box-folders.ts';
import type { Backend, Box, BoxSpec, Layers } from '../backend.ts';
import { createCopyBox } from './copy-box.ts';
import { createHostBox, groundOfHost, hostIdentity } from './host-box.ts';
import { HOST_IMAGE, type Images } from './images.ts';
import type { Layer } from './layer-store.ts';
import { type Ground, OverlayBox } from './overlay-box.ts';
import type { BoxParts } from './parts.ts';

/** `isLayered`: layers may be made, where the manager may mount. */
export function rootedBackend(name: string, parts: BoxParts, images: Images, isLayered: boolean): Backend {
  const { stage } = parts.host;
  return {
    name,
    isolates: true,
    images: () => images.names(),
    fetches: false,
    gpus: 'by_command',
    keep: (image) => images.keep(image),
    // Overlays need the right to mount.
    ...(isLayered && stage !== undefined && { layers: layersOf(parts, images) }),
    async create(spec, signal) {
      const image = spec.image || HOST_IMAGE;
      const identity = await abortable(images.prepare(image), signal);
      return await made(parts, spec, () => {
        if (image === HOST_IMAGE) return createHostBox(parts, spec);
        if (stage === undefined) return createCopyBox(parts, spec, images.placeOf(image, identity), signal);
        return held(images.hold(image, identity), (release) =>
          OverlayBox.create(parts, spec, groundOfImage([images.placeOf(image, identity)], release)),
        );
      });
    },
  };
}

function layersOf(parts: BoxParts, images: Images): Layers {
  return {
    worthMs: 0,
    keepsFirst: false,
    areFree: true,
    has: (key) => parts.layers.has(key),
    async identityOf(image, signal) {
      if (image === '' || image === HOST_IMAGE) return hostIdentity();
      return await abortable(images.prepare(image), signal);
    },
    async clone(key, spec, _signal, identity) {
      const layer = parts.layers.take(key);
      if (layer === undefined) return undefined;
      const image = spec.image || HOST_IMAGE;
      const lower = `layers/${layer.path}`;
      return await held(layer.release, () =>
        held(images.hold(image, identity), (release) => {
          const ground =
            image === HOST_IMAGE
              ? groundOfHost(layer, [lower])
              : groundOfImage([lower, images.placeOf(image, identity)], release, layer);
          return made(parts, spec, () => OverlayBox.create(parts, spec, ground));
        }),
      );
    },
  };
}

/** What the sandbox holds, unless it cannot be made. */
async function held(release: () => void, make: (release: () => void) => Promise<Box>): Promise<Box> {
  try {
    return await make(release);
  } catch (error) {
    release();
    throw error;
  }
}

const groundOfImage = (lowers: readonly string[], image: () => void, layer?: Layer): Ground => ({
  ...{ lowers, image, readOnly: [], readOnlyTry: [], covered: ['proc', 'dev'] },
  ...(layer && { layer }),
});

/** Leaves nothing behind where the sandbox cannot be made. */
async function made({ host }: BoxParts, { id }: BoxSpec, make: () => Promise<Box>): Promise<Box> {
  try {
    return await make();
  } catch (error) {
    await removeBox(join(host.boxes, id)).catch(() => {});
    const { code, path, message } = error as NodeJS.ErrnoException;
    // The node's own disk, whatever the sandbox may write to its own.
    if (code !== 'ENOSPC' || path?.startsWith(host.boxes) !== true) throw error;
    throw new PolarError('SANDBOX_FAILED', `the sandbox could not be made: ${message}`, { cause: error });
  }
}
