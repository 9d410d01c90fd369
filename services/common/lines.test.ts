import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setImmediate as look } from 'node:timers/promises';
import { eventually } from '../../test/support/eventually.ts';
import { Lines } from './lines.ts';

describe('lines to a file', () => {
  it('go on when there is room again on a disk that was full', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-lines-'));
    const file = join(folder, 'log');
    const fd = openSync('/dev/full', 'a');
    const lines = new Lines(fd);
    lines.add('one\n', true);
    await look();
    // The write must have failed before its descriptor is another file's.
    await eventually('the write is over', () => !process.getActiveResourcesInfo().includes('FSReqCallback'));
    closeSync(fd);
    const others = openedUpTo(fd, file);
    lines.add('two\n', false);
    await eventually('both are there', () => readFileSync(file, 'utf8') === 'one\ntwo\n');
    for (const other of [...others, fd]) closeSync(other);
    rmSync(folder, { recursive: true });
  });
});

/** Opens the file until it has this descriptor; those that it got before. */
function openedUpTo(fd: number, file: string): number[] {
  const others: number[] = [];
  for (let at = openSync(file, 'w'); at !== fd; at = openSync(file, 'w')) others.push(at);
  return others;
}
