// One local mesh a data folder. The lock names its process, so that one whose process is gone counts no more.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { PolarError } from '../../../services/common/errors.ts';

/** Throws INVALID_CONFIG when another mesh runs on the folder. Returns what gives the lock back. */
export function lockDataDir(dataDir: string): () => void {
  const file = lockIn(dataDir);
  const me = JSON.stringify({ pid: process.pid, started: startOf(process.pid) });
  try {
    writeFileSync(file, me, { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const holder = livingHolder(file);
    if (holder !== undefined) {
      throw new PolarError(
        'INVALID_CONFIG',
        `a mesh runs on ${dataDir} already (process ${holder.pid}): stop it, or choose another folder with --data-dir`,
      );
    }
    writeFileSync(file, me);
  }
  return () => rmSync(file, { force: true });
}

/** Whether a mesh runs on the folder. */
export const isLocked = (dataDir: string): boolean => livingHolder(lockIn(dataDir)) !== undefined;

const lockIn = (dataDir: string): string => join(dataDir, 'run', 'lock');

function livingHolder(file: string): { pid: number } | undefined {
  try {
    const { pid, started } = JSON.parse(readFileSync(file, 'utf8')) as { pid: number; started: string };
    return startOf(pid) === started ? { pid } : undefined;
  } catch {
    return undefined;
  }
}

/** When a process started, in the kernel's ticks; a pid alone may have been given out again. */
function startOf(pid: number): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ');
    return fields?.[19] ?? '';
  } catch {
    return 'gone';
  }
}
