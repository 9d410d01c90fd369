// Images of apptainer's own format, beside those that are folders. A file is unpacked once, into the node's data, as other nodes
// may have the same images: sandboxes lie over the folder.
import { existsSync, readdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { PolarError } from '../../../common/errors.ts';
import { newId } from '../../../common/ids.ts';
import { unpackLaunch } from '../../domain/apptainer-launch.ts';
import { makeOwned, removeTree } from '../../host/box-folders.ts';
import type { Host } from '../../host/host.ts';
import { Limit } from '../../host/limit.ts';
import { placeOutputs } from '../../host/output.ts';
import { type Images, imagesOf } from '../bubblewrap/images.ts';
import type { Launcher } from '../bubblewrap/launch.ts';
import type { BoxParts } from '../bubblewrap/parts.ts';

const SIF = /^[A-Za-z0-9][A-Za-z0-9._-]{0,123}\.sif$/;
const NEW = 'new-';
const UNPACK_MS = 600_000;

type Unpacking = Pick<Launcher, 'baseEnv' | 'args' | 'exitCode'>;

export function sifImages(
  host: Host,
  program: string,
  partsWith: (unpacking: Unpacking) => BoxParts,
): Images {
  const folders = imagesOf(host);
  const shelf = host.unpacked;
  const unpacking = new Map<string, Promise<void>>();
  const parts = partsWith({
    baseEnv: {},
    args: (_options, fds) => unpackLaunch(program, join(host.stage ?? '', 'unpacked'), fds),
    exitCode: (_status, { code }) => code,
  });
  const keyOf = (name: string): string => {
    const { ino, size, mtimeMs } = statSync(join(host.imagesDir, name));
    return `${name}@${ino}-${size}-${mtimeMs}`;
  };
  const sifs = (): string[] => sifsIn(host.imagesDir);
  // What cannot be removed now is tried again at the next start.
  void clear(shelf, () => sifs().map(keyOf)).catch(() => {});
  return {
    names: () => [...folders.names(), ...sifs()],
    identityOf: (name) => (SIF.test(name) ? keyOf(name) : folders.identityOf(name)),
    placeOf: (name) => (SIF.test(name) ? `unpacked/${keyOf(name)}` : folders.placeOf(name)),
    async prepare(name) {
      if (!SIF.test(name)) return await folders.prepare(name);
      if (!sifs().includes(name)) throw missing(name, host.imagesDir);
      const key = keyOf(name);
      if (existsSync(join(shelf, key))) return;
      let one = unpacking.get(key);
      if (one === undefined) {
        one = unpack(parts, name, key).finally(() => unpacking.delete(key));
        one.catch(() => {});
        unpacking.set(key, one);
      }
      await one;
    },
  };
}

/** Whole once it has its name. Throws SANDBOX_FAILED with apptainer's words. */
async function unpack(parts: BoxParts, name: string, key: string): Promise<void> {
  const { host } = parts;
  const { unpacked: shelf, stage = '' } = host;
  const id = newId('unpack');
  const [folder, target] = [join(host.boxes, id), `${NEW}${id}`];
  makeOwned(folder, undefined);
  const spec = { id, session: '', image: name, limits: { memoryBytes: 0, cpus: 0 }, gpus: 0, storageMb: 0 };
  const said: Uint8Array[] = [];
  try {
    await placeOutputs(host.fifos, folder);
    const { exitCode } = await parts.launch(
      {
        ...{ spec, folder, prefix: [...host.enterAsSandbox(), ...parts.launcher.argv] },
        options: { root: '/', readOnly: [], readOnlyTry: [] },
        command: {
          argv: [join(stage, 'unpacked', target), join(stage, 'images', name)],
          ...{ cwd: '/', env: {}, stdin: new Uint8Array(), limit: new Limit(UNPACK_MS), mounts: [] },
          proxyAs: undefined,
        },
      },
      (_stream, bytes) => said.push(bytes),
      AbortSignal.timeout(2 * UNPACK_MS),
    );
    if (exitCode !== 0) throw unreadable(name, Buffer.concat(said).toString().trim());
    renameSync(join(shelf, target), join(shelf, key));
  } finally {
    await removeTree(join(shelf, target));
    await removeTree(folder);
  }
}

/** What was not finished, and what files that went or changed have left: no sandbox lies on it yet. */
async function clear(shelf: string, wanted: () => string[]): Promise<void> {
  const keys = wanted();
  for (const name of readdirSync(shelf)) if (!keys.includes(name)) await removeTree(join(shelf, name));
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
