import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../../test/support/eventually.ts';
import { Lines } from './lines.ts';

describe('lines to a file', () => {
  it('go on when there is room again on a disk that was full', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-lines-'));
    const file = join(folder, 'log');
    const fd = openSync('/dev/full', 'a');
    const lines = new Lines(fd);
    lines.add('one\n', true);
    await new Promise((resolve) => setTimeout(resolve, 20));
    closeSync(fd);
    // The same descriptor, as the first one that is free.
    expect(openSync(file, 'w')).to.equal(fd);
    lines.add('two\n', false);
    await eventually('both are there', () => readFileSync(file, 'utf8') === 'one\ntwo\n');
    rmSync(folder, { recursive: true });
  });
});
