import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { RewardFile } from './reward-file.ts';

describe('a file of a reward', () => {
  let folder: string;
  let file: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-reward-'));
    file = join(folder, 'reward.txt');
  });
  after(() => rmSync(folder, { recursive: true }));

  it('is read when the command has written it, the same number, too', () => {
    const fresh = new RewardFile(file);
    expect(() => fresh.read()).to.throw('ENOENT');
    writeFileSync(file, '0.5\n');
    expect(fresh.read()).to.equal(0.5);
    const again = new RewardFile(file);
    writeFileSync(file, '0.5\n');
    expect(again.read()).to.equal(0.5);
  });

  it('is not that of the run before', () => {
    writeFileSync(file, '1');
    expect(() => new RewardFile(file).read()).to.throw('is from before the command');
  });

  it('holds a number that a session may have, and nothing else', () => {
    for (const text of ['', 'good', 'NaN', 'Infinity', '-2e6', 'x'.repeat(500)]) {
      const fresh = new RewardFile(file);
      writeFileSync(file, text);
      expect(() => fresh.read(), text).to.throw(/must be a number from -1000000 to 1000000, not .{0,110}$/);
    }
  });
});
