// One local mesh a data folder. The lock names its process, so that one whose process is gone counts no more.
import { readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { claim } from '../../../services/common/claim.ts';
import { PolarError } from '../../../services/common/errors.ts';
import { sha256 } from '../../../services/common/ids.ts';

/** Throws INVALID_CONFIG when another mesh runs on the folder, or is about to. Returns what gives the lock back. */
export async function lockDataDir(dataDir: string): Promise<() => Promise<void>> {
  const file = lockIn(dataDir);
  const claimed = await claim(`mesh-${sha256(realpathSync(dataDir))}`);
  const release = async (): Promise<void> => claimed?.[Symbol.asyncDispose]();
  try {
    // Of one in another container on the same folder there is the file alone.
    const holder = livingHolder(file);
    if (claimed === undefined || holder !== undefined) throw held(dataDir, holder);
    writeFileSync(file, JSON.stringify({ pid: process.pid, started: startOf(process.pid) }));
  } catch (error) {
    await release();
    throw error;
  }
  return async () => {
    rmSync(file, { force: true });
    await release();
  };
}

function held(dataDir: string, holder: { pid: number } | undefined): PolarError {
  const by = holder === undefined ? '' : ` (process ${holder.pid})`;
  const message = `a mesh runs on ${dataDir} already${by}: stop it, or choose another folder with --data-dir`;
  return new PolarError('INVALID_CONFIG', message);
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
