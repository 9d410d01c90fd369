// Making and deleting the folders of a sandbox on the host.
import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  type Stats,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { SYSTEM_PATH } from './tools.ts';

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/** Entries of a tree that are deleted in one go, which takes a millisecond; a process of its own deletes larger ones. */
const AT_ONCE_MAX = 128;
/** The same for what they take on the disk, in blocks of 512 bytes: it is given back before `unlink` returns. */
const BLOCKS_AT_ONCE_MAX = 8_192;
/** Of a folder itself, which is listed as a whole: some hundred names. */
const FOLDER_BYTES_MAX = 32_768;
/** Also what an agent has locked, or nested deeper than a path can name. */
const REMOVE = 'chmod -R u+rwX "$1" 2> /dev/null; exec rm -rf -- "$1"';
/** Before a folder that could not be deleted is tried again; doubled each time, up to the second. */
const REMOVE_AGAIN_MS = 1_000;
const REMOVE_AGAIN_MS_MAX = 60_000;
/** Permission bits that new folders lack. */
const MASKED = process.umask();

/** One new folder; `uid` owns it, undefined: this process. */
export function makeOwned(path: string, uid: number | undefined, mode = 0o755): void {
  mkdirSync(path, { mode });
  if (uid !== undefined) chownSync(path, uid, uid);
  if ((mode & MASKED) !== 0) chmodSync(path, mode);
}

/** One new file of a new sandbox: no agent has run in it yet. */
export function writeOwned(path: string, content: string, uid: number | undefined, mode = 0o644): void {
  writeFileSync(path, content, { mode, flag: 'wx' });
  if (uid !== undefined) chownSync(path, uid, uid);
}

export function makeAllOwned(root: string, folders: readonly string[], uid: number | undefined): void {
  for (const folder of folders) makeOwned(join(root, folder), uid);
}

/** Root needs no such right, so images may have their root closed to it. */
export function openToOwner(folder: string): void {
  chmodSync(folder, (lstatSync(folder).mode & 0o7777) | 0o700);
}

/** Delete a tree in which nothing runs any more; one that is not there is no error. */
export async function removeTree(path: string): Promise<void> {
  if (removedAtOnce(path)) return;
  await promisify(execFile)('sh', ['-c', REMOVE, 'sh', path], { env: { PATH: SYSTEM_PATH } });
}

/**
 * The same of a sandbox, whose name nothing has again. Throws where some of it is left, as while this process has no descriptor
 * for it: then it is tried again until it is gone.
 */
export async function removeBox(path: string, againMs = REMOVE_AGAIN_MS): Promise<void> {
  try {
    await removeTree(path);
  } catch (error) {
    const next = Math.min(2 * againMs, REMOVE_AGAIN_MS_MAX);
    setTimeout(() => void removeBox(path, next).catch(() => {}), againMs).unref();
    throw error;
  }
}

/**
 * A new sandbox has some thirty entries: each one by a thread of Node.js, as its asynchronous functions do it, takes five
 * times the CPU. Each step is taken from an open folder: another command of runtime `process` has the same user, and could
 * put a link to the host's own in the place of a folder. False: some of the tree is left.
 */
function removedAtOnce(path: string): boolean {
  let left = AT_ONCE_MAX;
  let blocks = BLOCKS_AT_ONCE_MAX;
  const isSmall = (found: Stats, bytesMax = Number.POSITIVE_INFINITY): boolean => {
    blocks -= found.blocks;
    return blocks >= 0 && found.size <= bytesMax;
  };
  const emptyOpen = (fd: number): boolean => {
    if (!isSmall(fstatSync(fd), FOLDER_BYTES_MAX)) return false;
    const folder = `/proc/self/fd/${fd}`;
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (left-- === 0) return false;
      const below = `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!remove(below)) return false;
      } else {
        if (!isSmall(lstatSync(below))) return false;
        unlinkSync(below);
      }
    }
    return true;
  };
  const remove = (folder: string): boolean => {
    const fd = openSync(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    try {
      if (!emptyOpen(fd)) return false;
    } finally {
      closeSync(fd);
    }
    rmdirSync(folder);
    return true;
  };
  try {
    return remove(path);
  } catch {
    return !existsSync(path);
  }
}
