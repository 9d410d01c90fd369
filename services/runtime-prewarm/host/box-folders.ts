// Making and deleting the folders of a sandbox on the host.
import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { SYSTEM_PATH } from './tools.ts';

/** Entries of a tree that are deleted in one go, which takes a millisecond; a process of its own deletes larger ones. */
const AT_ONCE_MAX = 128;
/** The same for what they take on the disk, in blocks of 512 bytes: it is given back before `unlink` returns. */
const BLOCKS_AT_ONCE_MAX = 8_192;
/** Of a folder itself, which is listed as a whole: some hundred names. */
const FOLDER_BYTES_MAX = 32_768;
/** Also what an agent has locked, or nested deeper than a path can name. */
const REMOVE = 'chmod -R u+rwX "$1" 2> /dev/null; exec rm -rf -- "$1"';
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

/** Delete a tree in which nothing runs any more; one that is not there is no error. */
export async function removeTree(path: string): Promise<void> {
  if (removedAtOnce(path)) return;
  await promisify(execFile)('sh', ['-c', REMOVE, 'sh', path], { env: { PATH: SYSTEM_PATH } });
}

/**
 * A new sandbox has some thirty entries: each one by a thread of Node.js, as its asynchronous functions do it, takes five
 * times the CPU. False: some of the tree is left.
 */
function removedAtOnce(path: string): boolean {
  let left = AT_ONCE_MAX;
  let blocks = BLOCKS_AT_ONCE_MAX;
  const isSmall = (one: string, bytesMax = Number.POSITIVE_INFINITY): boolean => {
    const found = lstatSync(one);
    blocks -= found.blocks;
    return blocks >= 0 && found.size <= bytesMax;
  };
  const empty = (folder: string): boolean => {
    if (!isSmall(folder, FOLDER_BYTES_MAX)) return false;
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (left-- === 0) return false;
      const below = join(folder, entry.name);
      if (entry.isDirectory()) {
        if (!empty(below)) return false;
      } else {
        if (!isSmall(below)) return false;
        unlinkSync(below);
      }
    }
    rmdirSync(folder);
    return true;
  };
  try {
    return empty(path);
  } catch {
    return !existsSync(path);
  }
}
