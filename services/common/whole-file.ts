// Lines to a file that somebody names: it is there when all of it is.
import { createWriteStream } from 'node:fs';
import { lstat, realpath, rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { PolarError } from './errors.ts';

/**
 * Where a link leads, that is written, and the link stays. What is no regular file, as a device or a fifo, takes the lines
 * as they come: nothing may stand in its place. Throws INVALID_REQUEST where it cannot be written.
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
  const part = inPlace ? file : `${file}.part`;
  try {
    await pipeline(Readable.from(lines), createWriteStream(part), { ...(signal && { signal }) });
    if (!inPlace) await rename(part, file);
  } catch (error) {
    if (!inPlace) await rm(part, { force: true });
    if (signal?.aborted || error instanceof PolarError) throw error;
    throw new PolarError('INVALID_REQUEST', `${named} cannot be written: ${(error as Error).message}`);
  }
}
