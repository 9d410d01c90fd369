// The disk of the node under a sandbox, which others fill too.
import { execFile } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { promisify } from 'node:util';
import { withTimeout } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { type DiskRoom, type DiskUse, hasFilled, isFull, lacksInodes } from '../domain/disk-room.ts';
import { SYSTEM_PATH } from './tools.ts';

/** Looking through a sandbox once its disk is full; then that is none of its doing. */
const LOOK_MS = 5_000;

/** Where what a sandbox writes lies. */
export interface BoxDisk {
  /** On the same file system. */
  readonly folder: string;
  /** What the sandbox takes of it. */
  written(signal: AbortSignal): Promise<DiskUse>;
}

export class NodeDisk {
  readonly #disk: BoxDisk;
  /** As the sandbox was made; undefined: it cannot be asked. */
  readonly #before: DiskRoom | undefined;

  constructor(disk: BoxDisk) {
    this.#disk = disk;
    this.#before = roomOf(disk.folder);
  }

  /** For the end of a command. Throws SANDBOX_FAILED where the disk is full, unless the sandbox has filled it by itself. */
  async refuseFull(signal: AbortSignal): Promise<void> {
    const { folder } = this.#disk;
    const now = roomOf(folder);
    if (this.#before === undefined || now === undefined || !isFull(now)) return;
    const written = await this.#disk.written(withTimeout(LOOK_MS, signal)).catch(() => undefined);
    if (written !== undefined && hasFilled(this.#before, written)) return;
    const left = `${now.freeBytes} bytes and ${now.freeInodes} inodes are left at ${folder}`;
    throw new PolarError('SANDBOX_FAILED', `ENOSPC: the node's disk is full: ${left}`);
  }
}

/** On the disk. */
export const bytesOf = (folder: string): Promise<number> => counted(folder, '--block-size=1');

export async function useOf(folder: string, signal: AbortSignal): Promise<DiskUse> {
  const counts = ['--block-size=1', '--inodes'].map((what) => counted(folder, what, signal));
  const [bytes = 0, inodes = 0] = await Promise.all(counts);
  return { bytes, inodes };
}

/** Files can be many, so not in this process. */
async function counted(folder: string, what: string, signal?: AbortSignal): Promise<number> {
  const options = { env: { PATH: SYSTEM_PATH }, ...(signal && { signal }) };
  const { stdout } = await promisify(execFile)('du', ['-sx', what, folder], options);
  return Number.parseInt(stdout, 10);
}

/** Takes 2 µs. Undefined: it cannot be asked. */
export function roomOf(folder: string): DiskRoom | undefined {
  try {
    const { bsize, blocks, bavail, files, ffree } = statfsSync(folder);
    return {
      ...{ freeBytes: bavail * bsize, totalBytes: blocks * bsize },
      ...{ freeInodes: ffree, totalInodes: files },
    };
  } catch {
    return undefined;
  }
}

export function lacksInodesAt(folder: string): boolean {
  const room = roomOf(folder);
  return room !== undefined && lacksInodes(room);
}
