// Where the files of a sandbox lie: in its folder, or on a disk of its own where the task caps what it may write.
import { type ExecFileException, execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PolarError } from '../../../common/errors.ts';
import { RPC_TIMEOUT_MS } from '../../../common/limits.ts';
import type { DiskUse } from '../../domain/disk-room.ts';
import type { Host } from '../../host/host.ts';
import { useOf } from '../../host/node-disk.ts';
import { SYSTEM_PATH } from '../../host/tools.ts';
import type { BoxSpec } from '../backend.ts';

export interface Place {
  /** For this process. */
  readonly path: string;
  /** For launchers. */
  readonly seen: string;
  /** For launchers, from the stage on. */
  readonly below: string;
  /** A disk of its own, whose files are none of the node's. */
  readonly isDisk: boolean;
}

const DISK = 'disk';

/**
 * An image of its full size, of which the host stores what is written. It loses its name once it is mounted, and the
 * kernel gives the loop device back with the last mount: nothing is left of it, whoever is killed.
 */
const MOUNT = [
  'cd "$1"; mkdir disk; truncate -s "$2M" image; trap "rm -f image" EXIT',
  'mkfs.ext4 -q -F -m 0 -O ^has_journal -E "lazy_itable_init=1,discard,root_owner=$3:$3" image',
  'mount -o loop,nosuid,nodev image disk',
].join('\n');

/** Of what has no room, or nothing to be done with, for now. */
const FOR_NOW = /No space left on device|Cannot allocate memory|Resource temporarily unavailable/;

/** Throws BACKEND_UNAVAILABLE where disks cannot be mounted, SANDBOX_FAILED where one could not. The folder of the sandbox is there. */
export async function placeOf(host: Host, { id, storageMb }: BoxSpec): Promise<Place> {
  const [path, seen, below] = [join(host.boxes, id), host.boxSeen(id), join('boxes', id)];
  if (storageMb === 0) return { path, seen, below, isDisk: false };
  if (host.stage === undefined) throw unusable('this process may not mount');
  // Only the guardian's mount namespace has the disk; it goes when the folder below it is removed.
  const [nsenter = '', ...args] = [...host.enterStage(), 'sh', '-ec', MOUNT, 'sh'];
  try {
    const options = { env: { PATH: SYSTEM_PATH }, timeout: RPC_TIMEOUT_MS };
    await promisify(execFile)(nsenter, [...args, seen, String(storageMb), String(host.uid)], options);
  } catch (error) {
    throw notMounted(error as ExecFileException & { stderr?: string });
  }
  const fromHere = join(`/proc/${host.guardian.pid}/root`, seen, DISK);
  return { path: fromHere, seen: join(seen, DISK), below: join(below, DISK), isDisk: true };
}

/** Of the node's disk. */
export async function useOfPlace({ path, isDisk }: Place, signal: AbortSignal): Promise<DiskUse> {
  const use = await useOf(path, signal);
  return isDisk ? { ...use, inodes: 0 } : use;
}

/** What ended in time with an exit code has said whether it can be done here. */
function notMounted({ code, stderr = '', message }: ExecFileException & { stderr?: string }): PolarError {
  const why = stderr.trim() || message;
  if (typeof code === 'number' && !FOR_NOW.test(why)) return unusable(why);
  const full = why.includes('No space left') ? 'ENOSPC: ' : '';
  return new PolarError('SANDBOX_FAILED', `${full}the disk of the sandbox could not be made: ${why}`);
}

const unusable = (why: string): PolarError =>
  new PolarError('BACKEND_UNAVAILABLE', `runtime.storage_mb: it cannot be capped here: ${why}`);
