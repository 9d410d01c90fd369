import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { isLocked, lockDataDir } from './lock.ts';

describe('the lock of a data folder', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-lock-'));
    mkdirSync(join(folder, 'run'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('is had by one of those that find it left behind at the same moment', async () => {
    writeFileSync(join(folder, 'run', 'lock'), '{"pid": 1, "started": "long ago"}');
    expect(isLocked(folder)).to.equal(false);
    const both = await Promise.allSettled([lockDataDir(folder), lockDataDir(folder)]);
    const [mine] = both.filter((one) => one.status === 'fulfilled');
    const [other, ...none] = both.filter((one) => one.status === 'rejected');
    expect(none).to.deep.equal([]);
    expect(String(other?.reason)).to.contain(`a mesh runs on ${folder} already`);
    expect(isLocked(folder)).to.equal(true);
    await mine?.value();
    expect(isLocked(folder)).to.equal(false);
    await (await lockDataDir(folder))();
  });
});
