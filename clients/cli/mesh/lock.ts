// One local mesh a data folder. The lock names its process, so that one whose process is gone counts no more.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { PolarError } from '../../../services/common/errors.ts';

/** Throws INVALID_CONFIG when another mesh runs on the folder. Returns what gives the lock back. */
export function lockDataDir(dataDir: string): () => void {
  const file = join(dataDir, 'run', 'lock');
  const me = JSON.stringify({ pid: process.pid, started: startOf(process.pid) });
  try {
    writeFileSync(file, me, { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const holder = readHolder(file);
    if (holder !== undefined && startOf(holder.pid) === holder.started) {
      throw new PolarError(
        'INVALID_CONFIG',
        `a mesh runs on ${dataDir} already (process ${holder.pid}): stop it, or choose another folder with --data-dir`,
      );
    }
    writeFileSync(file, me);
  }
  return () => rmSync(file, { force: true });
}

function readHolder(file: string): { pid: number; started: string } | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as { pid: number; started: string };
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
