// Installations that nobody uses any more: they go when another version of their harness is installed. A folder's time of
// change says when its program was asked for last.
import { readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { withLock } from './lock.ts';
import { LIST } from './pip.ts';

/** One that no session has asked for in so long. */
const HARNESS_UNUSED_MS = 30 * 86_400_000;
/** Between two notes that one is used. */
const NOTE_MS = 3_600_000;
/** What lies in each that npm or pip has made; other folders are nobody's business. */
const MADE = ['package.json', LIST];

/** Notes that it is used; a cache that this process cannot write to is not cleared by it either. */
export async function noteUse(folder: string): Promise<void> {
  const nowMs = Date.now();
  const usedMs = await changedMs(folder);
  if (usedMs === undefined || Math.abs(nowMs - usedMs) < NOTE_MS) return;
  await utimes(folder, new Date(nowMs), new Date(nowMs)).catch(() => {});
}

/** Removes the other versions beside `folder` that nobody has asked for in HARNESS_UNUSED_MS. What cannot be removed stays. */
export async function removeUnused(folder: string, signal: AbortSignal): Promise<void> {
  const parent = dirname(folder);
  for (const name of await readdir(parent)) {
    const other = join(parent, name);
    if (name === basename(folder) || name.startsWith('.') || !(await isUnused(other))) continue;
    await withLock(`${other}.lock`, signal, async () => {
      if (await isUnused(other)) await remove(other);
    }).catch(() => {});
  }
}

async function isUnused(folder: string): Promise<boolean> {
  const made = await Promise.all(MADE.map((name) => changedMs(join(folder, name))));
  const usedMs = made.some((ms) => ms !== undefined) ? await changedMs(folder) : undefined;
  return usedMs !== undefined && Date.now() - usedMs > HARNESS_UNUSED_MS;
}

/** By another name first: half of it is never taken for the whole. A next installation removes what is left of that. */
async function remove(folder: string): Promise<void> {
  const aside = join(dirname(folder), `.tmp-${basename(folder)}-unused`);
  await rename(folder, aside);
  await rm(aside, { recursive: true, force: true });
}

const changedMs = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  );
