// A lock that two processes of one machine can rely on: a file that its owner keeps touching.
import { open, rm, stat, utimes } from 'node:fs/promises';
import { sleep } from '../../common/clock.ts';
import { INSTALL_LOCK_STALE_MS } from '../../common/limits.ts';

const PAUSE_MS = 200;

/** Run `task` while no other process holds `file`. A lock that its owner left behind is taken over. */
export async function withLock<T>(
  file: string,
  signal: AbortSignal,
  task: () => Promise<T>,
  staleMs = INSTALL_LOCK_STALE_MS,
): Promise<T> {
  const held = new Held(staleMs);
  while (!(await taken(file))) {
    if (await held.isLeft(file)) await rm(file, { force: true });
    signal.throwIfAborted();
    await sleep(PAUSE_MS, signal);
  }
  const touch = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => {});
  }, staleMs / 3);
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
  return false;
}

/**
 * A lock that somebody else holds, as it was seen while one waited. Looks are counted and no clock is read: that of the
 * machine may be set, and while this process stands still, its owner may, too.
 */
class Held {
  readonly #looksMax: number;
  #mtimeMs: number | undefined;
  #looks = 0;

  constructor(staleMs: number) {
    this.#looksMax = Math.ceil(staleMs / PAUSE_MS);
  }

  /** Its owner has not touched it for so long. */
  async isLeft(file: string): Promise<boolean> {
    const mtimeMs = await stat(file).then(
      (found) => found.mtimeMs,
      () => undefined,
    );
    this.#looks = mtimeMs !== undefined && mtimeMs === this.#mtimeMs ? this.#looks + 1 : 0;
    this.#mtimeMs = mtimeMs;
    return this.#looks >= this.#looksMax;
  }
}
