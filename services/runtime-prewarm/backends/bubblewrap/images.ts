// Root file systems for sandboxes: folders below the images folder.
import { chmodSync, type Dirent, lchownSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PolarError } from '../../../common/errors.ts';
import { type Host, SANDBOX_UID } from '../../host/host.ts';

/** The image that every host has. */
export const HOST_IMAGE = 'host';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const SET_ID_BITS = 0o6000;

export interface Images {
  names(): string[];
  /** Resolves to what names the image as it is, when it can be used; it goes on when who waits leaves. Throws IMAGE_NOT_FOUND. */
  prepare(name: string): Promise<string>;
  /** A sandbox lies on what was prepared as that, until what is returned is called. */
  hold(name: string, identity: string): () => void;
  /** A sandbox of it is being made, until what is returned is called. */
  keep(name: string): () => void;
  /** Folder from the stage on of an image that was prepared as that; it may have been replaced since. */
  placeOf(name: string, identity: string): string;
}

export function imagesOf(host: Host): Images {
  /** At work now: one that has ended may be replaced, and has to be looked at again. */
  const shifting = new Map<string, Promise<void>>();
  const names = (): string[] => [HOST_IMAGE, ...foldersOf(host.imagesDir)];
  return {
    names,
    // They are the operator's, and never go.
    ...{ hold: () => () => {}, keep: () => () => {} },
    placeOf: (name) => `images/${name}`,
    async prepare(name) {
      if (name === HOST_IMAGE) return '';
      if (!names().includes(name)) throw missing(name, host);
      let shifted = shifting.get(name);
      if (shifted === undefined && host.isRoot) {
        shifted = shiftOwners(join(host.imagesDir, name)).finally(() => shifting.delete(name));
        shifting.set(name, shifted);
      }
      await shifted;
      const { dev, ino, mtimeMs } = lstatSync(join(host.imagesDir, name));
      return `${name}:${dev}:${ino}:${mtimeMs}`;
    },
  };
}

/** A folder that has gone has none: the node's heartbeats name them, and have to go on. */
function foldersOf(imagesDir: string): string[] {
  return entriesOf(imagesDir)
    .filter((entry) => entry.isDirectory() && entry.name !== HOST_IMAGE && NAME.test(entry.name))
    .map((entry) => entry.name)
    .sort();
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/**
 * Move the owners of an image to the sandboxes' users, once: user u becomes SANDBOX_UID + u. What is shifted is left
 * alone, so that an interrupted shift goes on and two managers do not disturb each other; the root comes last and is the
 * mark of completeness. Set-user and set-group bits go, as they do with any change of owner.
 */
async function shiftOwners(root: string): Promise<void> {
  if (lstatSync(root).uid >= SANDBOX_UID) return;
  const folders = [root];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      shiftOwner(path);
    }
    await nextTurn();
  }
  shiftOwner(root);
}

function shiftOwner(path: string): void {
  const { uid, gid, mode } = lstatSync(path);
  if (uid >= SANDBOX_UID) return;
  lchownSync(path, SANDBOX_UID + uid, SANDBOX_UID + gid);
  const isLink = (mode & 0o170000) === 0o120000;
  if (!isLink) chmodSync(path, mode & 0o7777 & ~SET_ID_BITS);
}

const missing = (name: string, { imagesDir }: Host): PolarError =>
  new PolarError(
    'IMAGE_NOT_FOUND',
    `there is no image ${JSON.stringify(name)} on this node: put a root file system at ${join(imagesDir, name)}, or use image "${HOST_IMAGE}"`,
  );
