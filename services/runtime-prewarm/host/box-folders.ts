// Making and deleting the folders of a sandbox on the host.
import { execFile } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SYSTEM_PATH } from './tools.ts';

/** One new folder; `uid` owns it, undefined: this process. */
export function makeOwned(path: string, uid: number | undefined, mode = 0o755): void {
  mkdirSync(path, { mode });
  if (uid !== undefined) chownSync(path, uid, uid);
  // The process's umask does not decide.
  chmodSync(path, mode);
}

/** One new file of a new sandbox: no agent has run in it yet. */
export function writeOwned(path: string, content: string, uid: number | undefined, mode = 0o644): void {
  writeFileSync(path, content, { mode, flag: 'wx' });
  if (uid !== undefined) chownSync(path, uid, uid);
}

export function makeAllOwned(root: string, folders: readonly string[], uid: number | undefined): void {
  for (const folder of folders) makeOwned(join(root, folder), uid);
}

/** Delete a tree in which nothing runs any more, also one whose folders an agent has locked. */
export async function removeTree(path: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: 3 };
  try {
    await rm(path, options);
  } catch {
    await promisify(execFile)('chmod', ['-R', 'u+rwX', path], { env: { PATH: SYSTEM_PATH } }).catch(() => {});
    await rm(path, options);
  }
}
