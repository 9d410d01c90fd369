// Child processes, of a process that may have no descriptor left.
import { spawn } from 'node:child_process';

/**
 * The same, but it throws where there is no descriptor for a pipe. There a child of `spawn` has none of its streams, and the
 * error that it tells of itself comes when nobody can have listened yet, which ends the whole process.
 */
export const spawnChild = ((file: string, args: readonly string[], options: object) => {
  const child = spawn(file, args, options);
  // As it is typed, it always has them.
  if ((child.stdio as readonly unknown[] | undefined) !== undefined) return child;
  child.on('error', () => {});
  throw Object.assign(new Error(`EMFILE: too many open files, spawn ${file}`), { code: 'EMFILE' });
}) as typeof spawn;
