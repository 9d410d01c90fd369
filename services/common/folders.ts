// Folders made with all that they lie in.
import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { faulty } from './config/faults.ts';

/**
 * As Node's own `recursive`, which never returns where a folder is there and nothing can be made in it, as below /proc: it
 * takes the answer for a missing parent. `mode` is that of the last one if it is made here, whatever the umask. Throws what
 * the file system says.
 */
export function makeFolders(path: string, mode?: number): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path) makeFolders(above);
  try {
    mkdirSync(path, mode);
    if (mode !== undefined) chmodSync(path, mode);
  } catch (error) {
    // Another process may have been faster.
    if (!isFolder(path)) throw error;
  }
}

/** The same where a service keeps what it has, when it starts. `key` of the topology says where. Throws INVALID_CONFIG. */
export function makeFoldersOf(key: string, path: string, mode?: number): void {
  try {
    makeFolders(path, mode);
  } catch (error) {
    const description = `${path} cannot be made: ${(error as Error).message}`;
    throw faulty('INVALID_CONFIG', 'the topology', [{ field: key, description }]);
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
