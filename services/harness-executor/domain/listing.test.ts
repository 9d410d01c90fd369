import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { LISTING_SCRIPT, listed } from './listing.ts';

describe('the listing of what is to be kept', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-listing-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  for (const [how, env] of [
    ['by find', process.env],
    ['without it', { PATH: '/nowhere' }],
  ] as const) {
    it(`finds files below folders, single files, and nothing where nothing is, ${how}`, () => {
      const [logs, report, none] = [join(folder, 'logs'), join(folder, '-r'), join(folder, 'none')];
      mkdirSync(join(logs, 'a b', '.c'), { recursive: true });
      mkdirSync(join(logs, 'empty'));
      for (const name of ['x\ny', '.c/..d', '.c/.e']) writeFileSync(join(logs, 'a b', name), '');
      symlinkSync('/etc/passwd', join(logs, 'link'));
      symlinkSync('/etc', join(logs, 'links'));
      writeFileSync(report, '');
      const roots = [none, report, logs];
      const output = execFileSync('/bin/sh', ['-c', LISTING_SCRIPT, 'sh', ...roots], { env });
      const found = listed(roots, output);
      expect(found.filter(({ root }) => root !== logs)).to.deep.equal([{ root: report, path: report }]);
      expect(found.filter(({ root }) => root === logs).map(({ path }) => path)).to.have.members(
        ['x\ny', '.c/..d', '.c/.e'].map((name) => join(logs, 'a b', name)),
      );
    });
  }

  it('leaves out what was cut', () => {
    expect(listed(['/a'], Buffer.from('./one\0./tw'))).to.deep.equal([{ root: '/a', path: '/a/one' }]);
    expect(listed(['/a'], Buffer.from('\0./more\0'))).to.deep.equal([]);
  });
});
