import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { LogFiles, lastWords, sizeOf } from './logs.ts';

const LARGE_BYTES = 33 * 1024 * 1024;

describe('logs of a local mesh', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-logs-'));
  after(() => rmSync(folder, { recursive: true }));

  it('stay as they are while they cannot be moved aside, and are when they can', () => {
    using logs = new LogFiles();
    const file = join(folder, 'scheduler.log');
    writeFileSync(file, '');
    // Nothing is on the disk of it.
    truncateSync(file, LARGE_BYTES);
    // Like a full disk, a folder in its place takes no copy.
    mkdirSync(`${file}.1`);
    logs.add(file);
    expect([sizeOf(file), existsSync(`${file}.1`)]).to.deep.equal([LARGE_BYTES, false]);
    logs.check();
    expect([sizeOf(file), sizeOf(`${file}.1`)]).to.deep.equal([0, LARGE_BYTES]);
  });

  it('have the last words of a process, for people where it has such', () => {
    const said = (text: string, from = 0): string => {
      const file = join(folder, 'said.log');
      writeFileSync(file, text);
      return lastWords(file, from);
    };
    expect(said('{"level":"info"}\npolar: INVALID_CONFIG: a\n b\n')).to.equal('INVALID_CONFIG: a\n b');
    expect(said('1\n2\n3\n4\n5\n6\n')).to.equal('2\n3\n4\n5\n6');
    expect(said('before\nafter\n', 'before\n'.length)).to.equal('after');
    expect(said('')).to.equal('');
  });
});
