// Folders of the host as launchers see them, on the stage, which holds what was there as the guardian started.
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ResolvedMount } from '../domain/mounts.ts';
import { SYSTEM_PATH } from './tools.ts';

const AGAIN = 'umount -l "$1"; mount --rbind "$2" "$1"';

export interface Stage {
  readonly guardianPid: number;
  /** Undefined: launchers see folders at their own places. */
  readonly path: string | undefined;
  /** Name on the stage to host path. */
  readonly shown: ReadonlyMap<string, string>;
}

/** What it returns shows folders again that were deleted and made anew. */
export function mountsShown(stage: Stage): (mounts: readonly ResolvedMount[]) => Promise<void> {
  // One after the other, so that nobody takes away what somebody has just shown.
  let showing = Promise.resolve();
  return async (mounts) => {
    for (const root of new Set(mounts.map((one) => one.root))) {
      const done = showing.then(() => showAgain(stage, root));
      showing = done.catch(() => {});
      await done;
    }
  };
}

/** Where another folder has that name by now. What runs keeps the one that it has. */
async function showAgain({ guardianPid, path, shown }: Stage, root: string): Promise<void> {
  const source = shown.get(root);
  if (path === undefined || source === undefined) return;
  const place = join(path, root);
  const [now, seen] = [source, `/proc/${guardianPid}/root${place}`].map((one) =>
    statSync(one, { throwIfNoEntry: false }),
  );
  if (now === undefined || (now.ino === seen?.ino && now.dev === seen.dev)) return;
  const argv = [`--mount=/proc/${guardianPid}/ns/mnt`, '--', 'sh', '-ec', AGAIN, 'sh', place, source];
  await promisify(execFile)('nsenter', argv, { env: { PATH: SYSTEM_PATH } });
}
