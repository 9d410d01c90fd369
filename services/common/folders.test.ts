import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { reasonOf } from '../../test/support/reason-of.ts';
import { makeFolders, makeFoldersOf } from './folders.ts';

describe('folders', () => {
  let root: string;
  before(() => {
    root = mkdtempSync(join(tmpdir(), 'polar-test-folders-'));
  });
  after(() => rmSync(root, { recursive: true }));

  it('are made with all that they lie in, and stay where they are there', () => {
    const path = join(root, 'a/b/c');
    makeFolders(path, 0o711);
    makeFolders(path);
    expect(statSync(path).mode & 0o777).to.equal(0o711);
    symlinkSync(path, join(root, 'link'));
    makeFolders(join(root, 'link', 'd'));
    expect(existsSync(join(path, 'd'))).to.equal(true);
  });

  it('say what is in their way', () => {
    writeFileSync(join(root, 'file'), '');
    expect(() => makeFolders(join(root, 'file'))).to.throw(/EEXIST/);
    expect(() => makeFolders(join(root, 'file', 'x', 'y'))).to.throw(/EEXIST/);
  });

  it('of a service that cannot be made are a fault of the topology', () => {
    writeFileSync(join(root, 'taken'), '');
    const make = (): void => makeFoldersOf('data_dir', join(root, 'taken', 'x'));
    expect(reasonOf(make)).to.equal('INVALID_CONFIG');
    expect(make).to.throw(/^the topology has 1 fault\(s\):\n {2}data_dir: .*taken\/x cannot be made: EEXIST/);
  });

  it('end where nothing can be made, as below /proc', async () => {
    // In a process of its own: what does not return could not be told here.
    const program = `import { makeFolders, makeFoldersOf } from ${JSON.stringify(join(import.meta.dirname, 'folders.ts'))};
      makeFolders('/proc/polar/x');`;
    const args = ['--input-type=module', '-e', program];
    const failed = await promisify(execFile)(process.execPath, args, { timeout: 10_000 }).catch(
      (error: { readonly code: number; readonly stderr: string }) => error,
    );
    expect(failed)
      .to.have.property('stderr')
      .that.includes("ENOENT: no such file or directory, mkdir '/proc/polar'");
  });
});
