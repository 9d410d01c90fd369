// Images of apptainer's own format, beside those that are folders. A file is unpacked once, into the node's data, as other nodes
// may have the same images: sandboxes lie over the folder. That is done in a sandbox, too.
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PolarError } from '../../../common/errors.ts';
import { newId } from '../../../common/ids.ts';
import { SIF_HEAD_BYTES, sifRoot } from '../../domain/sif.ts';
import { incompleteness, UNSQUASH } from '../../domain/unsquashing.ts';
import { openToOwner, removeTree } from '../../host/box-folders.ts';
import { Limit } from '../../host/limit.ts';
import { SYSTEM_PATH } from '../../host/tools.ts';
import { createHostBox } from '../bubblewrap/host-box.ts';
import { HOST_IMAGE, type Images, imagesOf } from '../bubblewrap/images.ts';
import type { BoxParts } from '../bubblewrap/parts.ts';
import { UnpackedImages } from './unpacked.ts';

const SIF = /^[A-Za-z0-9][A-Za-z0-9._-]{0,123}\.sif$/;
const UNPACK_MS = 600_000;
/** Inside. */
const [IMAGES, ROOT] = ['/images', '/image'];
/** `parts`: of sandboxes whose root keeps its rights, as files have owners. */
export function sifImages(parts: BoxParts, shelf: UnpackedImages, onUnpacked: () => void): Images {
  const { host } = parts;
  const folders = imagesOf(host);
  const unpacking = new Map<string, Promise<void>>();
  const keyOf = (name: string): string => UnpackedImages.keyOf(name, statSync(join(host.imagesDir, name)));
  const sifs = (): string[] => sifsIn(host.imagesDir);
  // What cannot be removed now is tried again at the next start.
  void shelf.clear(sifs().map(keyOf)).catch(() => {});
  return {
    names: () => [...folders.names(), ...sifs()],
    hold: (name, identity) => (SIF.test(name) ? shelf.hold(identity) : folders.hold(name, identity)),
    keep: (name) => shelf.keep(name),
    placeOf: (name, identity) => (SIF.test(name) ? `unpacked/${identity}` : folders.placeOf(name, identity)),
    async prepare(name) {
      if (!SIF.test(name)) return await folders.prepare(name);
      if (!sifs().includes(name)) throw missing(name, host.imagesDir);
      const key = keyOf(name);
      if (shelf.has(key)) {
        shelf.used(key);
        return key;
      }
      let one = unpacking.get(key);
      if (one === undefined) {
        one = unpack(parts, shelf, name, key).finally(() => unpacking.delete(key));
        one.then(onUnpacked).catch(() => {});
        unpacking.set(key, one);
      }
      await one;
      return key;
    },
  };
}

/** Whole once it has its name. Throws SANDBOX_FAILED with the words of unsquashfs. */
async function unpack(parts: BoxParts, shelf: UnpackedImages, name: string, key: string): Promise<void> {
  const { host } = parts;
  const source = host.imagesDir;
  const offset = rootOf(join(source, name), name);
  const id = newId('unpack');
  const limits = { memoryBytes: 0, cpus: 0 };
  try {
    const spec = { id, session: '', image: HOST_IMAGE, limits, gpus: 0, storageMb: 0 };
    const box = await createHostBox(parts, spec);
    const said: Uint8Array[] = [];
    await box.exec(
      {
        argv: ['sh', '-c', UNSQUASH, 'sh', '-offset', `${offset}`, '-dest', ROOT, join(IMAGES, name)],
        ...{ cwd: '/', env: { PATH: SYSTEM_PATH }, stdin: new Uint8Array(), limit: new Limit(UNPACK_MS) },
        ...{ mounts: [{ root: 'images', below: '', source, target: IMAGES }], proxyAs: undefined },
      },
      (_stream, bytes) => said.push(bytes),
      AbortSignal.timeout(2 * UNPACK_MS),
    );
    const why = incompleteness(Buffer.concat(said).toString());
    if (why !== undefined) throw unreadable(name, why);
    const root = join(host.boxes, id, 'root', ROOT);
    openToOwner(root);
    shelf.add(key, root);
  } finally {
    await removeTree(join(host.boxes, id));
  }
}

/** Where the root file system of an image file begins in it. */
function rootOf(file: string, name: string): number {
  const head = Buffer.alloc(SIF_HEAD_BYTES);
  const fd = openSync(file, 'r');
  try {
    const found = sifRoot(head.subarray(0, readSync(fd, head)));
    if ('unreadable' in found) throw unreadable(name, found.unreadable);
    return found.offset;
  } finally {
    closeSync(fd);
  }
}

/** None where the folder has gone: the node's heartbeats name images, and have to go on. */
function sifsIn(imagesDir: string): string[] {
  try {
    return readdirSync(imagesDir, { withFileTypes: true })
      .filter((entry) => entry.isFile() && SIF.test(entry.name))
      .map(({ name }) => name)
      .sort();
  } catch {
    return [];
  }
}

const missing = (name: string, imagesDir: string): PolarError =>
  new PolarError(
    'IMAGE_NOT_FOUND',
    `there is no image ${JSON.stringify(name)} on this node: put it into ${imagesDir}, as by apptainer pull`,
  );

const unreadable = (name: string, said: string): PolarError =>
  new PolarError('SANDBOX_FAILED', `image ${JSON.stringify(name)} cannot be unpacked: ${said}`);
