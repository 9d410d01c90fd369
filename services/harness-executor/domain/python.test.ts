import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { findPython, pythonFound } from './python.ts';

describe('the Python for a harness', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-python-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const program = (name: string, says: string): void =>
    writeFileSync(join(folder, name), `#!/bin/sh\n${says}\n`, { mode: 0o755 });
  const found = (min: string): unknown => {
    const [sh = '', ...args] = findPython(min);
    const PATH = `${folder}:${process.env['PATH']}`;
    return pythonFound(execFileSync(sh, args, { encoding: 'utf8', env: { PATH }, stdio: 'pipe' }));
  };

  it('is the first that is new enough', () => {
    // None that a machine has by these names would do.
    program('python3.15', 'exit 1');
    program('python3.14', 'echo 3.98');
    program('python3.13', 'echo 3.99');
    program('python3.12', 'echo 3.99');
    expect(found('3.99')).to.deep.equal({ path: join(folder, 'python3.13'), version: '3.99' });
    expect(found('3.98')).to.deep.equal({ path: join(folder, 'python3.14'), version: '3.98' });
  });

  it('is none where all are too old, whose versions are told', () => {
    program('python3.15', 'echo 3.97');
    expect(() => found('3.99')).to.throw('\n3.97\n');
  });

  it('is none where nothing like an answer is printed', () => {
    for (const printed of [
      '',
      'hello\n',
      'python3 3.12\n',
      '/usr/bin/python3 2.7\n',
      '/usr/bin/python3 3.12',
    ]) {
      expect(pythonFound(printed)).to.equal(undefined);
    }
  });
});
