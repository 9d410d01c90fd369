// Lines to a file that somebody names: it is there when all of it is.
import { createWriteStream } from 'node:fs';
import { lstat, realpath, rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { claimFile } from './claim.ts';
import { PolarError } from './errors.ts';

/**
 * One process writes there at a time. Where a link leads, that is written, and the link stays. What is no regular file, as a
 * device or a fifo, takes the lines as they come: nothing may stand in its place. Throws INVALID_REQUEST where it cannot be
 * written.
 */
export async function writeWhole(
  named: string,
  lines: AsyncIterable<string>,
  signal?: AbortSignal,
): Promise<void> {
  // A link that leads nowhere yet makes the file when it is written through.
  const file = await realpath(named).catch(() => named);
  const found = await lstat(file).catch(() => undefined);
  const inPlace = found !== undefined && !found.isFile();
  const write = (place: string) =>
    pipeline(Readable.from(lines), createWriteStream(place), { ...(signal && { signal }) });
  try {
    await (inPlace ? write(file) : writeAside(file, write));
  } catch (error) {
    if (signal?.aborted || error instanceof PolarError) throw error;
    throw new PolarError('INVALID_REQUEST', `${named} cannot be written: ${(error as Error).message}`);
  }
}

async function writeAside(file: string, write: (place: string) => Promise<void>): Promise<void> {
  await using own = await claimFile(file);
  if (own === undefined) throw new Error('another process writes it now');
  const part = `${file}.part`;
  try {
    await write(part);
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
