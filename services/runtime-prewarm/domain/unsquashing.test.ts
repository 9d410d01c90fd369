import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { incompleteness, UNSQUASH } from './unsquashing.ts';

const DEVICE =
  'create_inode: failed to create character device /image/dev/null, because Operation not permitted';
const OWNER = 'set_attributes: failed to change uid and gids on /image/a b, because Invalid argument';
const FULL = 'create_inode: failed to create symlink /image/bin, because No space left on device';

describe('unsquashing', () => {
  let bin: string;
  beforeEach(() => {
    bin = mkdtempSync(join(tmpdir(), 'polar-test-unsquash-'));
  });
  afterEach(() => rmSync(bin, { recursive: true }));

  function saidBy(script: string): string {
    writeFileSync(join(bin, 'unsquashfs'), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, 'unsquashfs'), 0o755);
    const env = { PATH: `${bin}:/usr/bin:/bin` };
    return execFileSync('/bin/sh', ['-c', UNSQUASH, 'sh'], { env, encoding: 'utf8' });
  }

  it('takes for whole what lacks devices, and owners that no sandbox has', () => {
    expect(incompleteness(saidBy('echo created 3 files'))).to.equal(undefined);
    const said = saidBy(`printf '\\n%s\\n' '${DEVICE}' '${OWNER}' >&2; exit 2`);
    expect(incompleteness(said)).to.equal(undefined);
  });

  it('says what is missing else', () => {
    const said = saidBy(`printf '%s\\n' '${DEVICE}' '${FULL}' >&2; exit 2`);
    expect(incompleteness(said)).to.equal(FULL);
    expect(incompleteness(saidBy('exit 1'))).to.equal('unsquashfs ended with 1');
    expect(incompleteness(saidBy('kill -9 $$'))).to.be.a('string');
    expect(incompleteness('')).to.equal('unsquashfs was ended');
    const none = 'sh: 1: unsquashfs: not found\nexit 127\n';
    expect(incompleteness(none)).to.contain('install squashfs-tools');
  });
});
