// A lock that two processes of one machine can rely on: a file that its owner keeps touching.
import { open, rm, stat, utimes } from 'node:fs/promises';
import { sleep } from '../../common/clock.ts';
import { INSTALL_LOCK_STALE_MS } from '../../common/limits.ts';

const PAUSE_MS = 200;

/** Run `task` while no other process holds `file`. A lock that its owner left behind is taken over. */
export async function withLock<T>(file: string, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
  while (!(await taken(file))) {
    signal.throwIfAborted();
    await sleep(PAUSE_MS, signal);
  }
  const touch = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => {});
  }, INSTALL_LOCK_STALE_MS / 3);
  try {
    return await task();
  } finally {
    clearInterval(touch);
    await rm(file, { force: true });
  }
}

async function taken(file: string): Promise<boolean> {
  try {
    await (await open(file, 'wx')).close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const since = await stat(file).then(
    // Its owner would have touched it since: a time to come is of a clock that was set back.
    ({ mtimeMs }) => Math.abs(Date.now() - mtimeMs),
    () => 0,
  );
  if (since > INSTALL_LOCK_STALE_MS) await rm(file, { force: true });
  return false;
}
