import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { LISTING_SCRIPT, listed } from './listing.ts';

describe('the listing of what is to be kept', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-listing-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('finds files below folders, single files, and nothing where nothing is', () => {
    const [logs, report, none] = [join(folder, 'logs'), join(folder, '-r'), join(folder, 'none')];
    mkdirSync(join(logs, 'a b'), { recursive: true });
    writeFileSync(join(logs, 'a b', 'x\ny'), '');
    symlinkSync('/etc/passwd', join(logs, 'link'));
    writeFileSync(report, '');
    const roots = [none, report, logs];
    const output = execFileSync('sh', ['-c', LISTING_SCRIPT, 'sh', ...roots]);
    expect(listed(roots, output)).to.deep.equal([
      { root: report, path: report },
      { root: logs, path: join(logs, 'a b', 'x\ny') },
    ]);
  });

  it('leaves out what was cut', () => {
    expect(listed(['/a'], Buffer.from('./one\0./tw'))).to.deep.equal([{ root: '/a', path: '/a/one' }]);
    expect(listed(['/a'], Buffer.from('\0./more\0'))).to.deep.equal([]);
  });
});
