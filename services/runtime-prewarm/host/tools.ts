// Programs of the host that sandboxes are made with.
import { accessSync, constants, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Search path of launchers: the system's own folders, never the manager's environment. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** First executable of that name on a search path; undefined if there is none. */
export function findTool(name: string, path: string): string | undefined {
  const folders = path.split(':').filter((folder) => folder.startsWith('/'));
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

/** The system's Python before others: shims of version managers start slowly. */
export function findPython(path: string): string | undefined {
  return findTool('python3', SYSTEM_PATH) ?? findTool('python3', path);
}

/** The folders of a search path that every user can reach, and the system's: others would turn "not found" into "not permitted". */
export function publicPath(path: string): string {
  const folders = [...path.split(':'), ...SYSTEM_PATH.split(':')];
  return [...new Set(folders)].filter((folder) => folder.startsWith('/') && isPublic(folder)).join(':');
}

function isPublic(folder: string): boolean {
  const mode = statSync(folder, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & constants.S_IXOTH) === 0) return false;
  return folder === '/' || isPublic(dirname(folder));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
