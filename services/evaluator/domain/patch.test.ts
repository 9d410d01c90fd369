import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { EXCLUDED_ALWAYS, filterPatch, isEmptyPatch } from './patch.ts';

describe('patches', () => {
  let folder: string;
  const git = (...args: string[]): Buffer =>
    execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.org', ...args], { cwd: folder });
  const write = (path: string, content: string | Buffer): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  };
  const patch = (...options: string[]): Buffer => {
    git('add', '-A');
    return git('diff', '--cached', '--binary', ...options, 'HEAD');
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-patch-'));
    git('init', '-q');
    for (const name of ['a.py', 'b c.py', 'tests/t.py', 'mode.sh']) write(name, `${name}\n1\n2\n3\n`);
    git('add', '-A');
    git('commit', '-qm', 'one');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('keeps every byte of what it does not leave out', () => {
    write('a.py', Buffer.from([0xff, 0xfe, 0x0a, 0x80, 0x0d, 0x0a]));
    write('latin.txt', Buffer.from('caf\xe9\n', 'latin1'));
    write('bin', Buffer.from([0, 1, 2, 0, 255]));
    write('noeol', 'x');
    const whole = patch();
    const { bytes, excluded } = filterPatch(whole, EXCLUDED_ALWAYS);
    expect(Buffer.compare(Buffer.from(bytes), whole)).to.equal(0);
    expect(excluded).to.deep.equal([]);
  });

  it('leaves out new, changed, binary, empty and deleted files by their path', () => {
    write('a.py', 'changed\n');
    write('x/__pycache__/a.pyc', Buffer.from([0, 1, 2]));
    write('empty.pyc', '');
    write('.pytest_cache/v/x', 'y\n');
    rmSync(join(folder, 'tests/t.py'));
    const { files, excluded, bytes } = filterPatch(patch(), [...EXCLUDED_ALWAYS, 'tests/']);
    expect(files).to.deep.equal(['a.py']);
    expect(excluded).to.have.members(['x/__pycache__/a.pyc', 'empty.pyc', '.pytest_cache/v/x', 'tests/t.py']);
    git('reset', '-q', '--hard');
    execFileSync('git', ['apply'], { cwd: folder, input: bytes });
    expect(git('status', '--porcelain').toString().trim()).to.equal('M a.py');
  });

  it('reads names with spaces, quotes and other alphabets', () => {
    const names = ['b c.py', 'ünï "x".txt', 'tab\there', 'b/c d.py', 'empty ü'];
    for (const name of names) write(name, name === 'empty ü' ? '' : 'new\n');
    const { files } = filterPatch(patch(), []);
    expect(files).to.have.members(names);
    for (const name of names) expect(filterPatch(patch(), [name]).files, name).not.to.include(name);
  });

  it('reads mode changes and renames, and matches a rename by either name', () => {
    execFileSync('chmod', ['+x', 'mode.sh'], { cwd: folder });
    renameSync(join(folder, 'tests/t.py'), join(folder, 'moved.py'));
    const renamed = patch('-M');
    expect(filterPatch(renamed, []).files).to.have.members(['mode.sh', 'moved.py']);
    expect(filterPatch(renamed, ['tests']).files).to.deep.equal(['mode.sh']);
    expect(filterPatch(renamed, ['moved.py', 'mode.sh']).files).to.deep.equal([]);
  });

  it('is not confused by content that looks like a header', () => {
    write(
      'a.py',
      'diff --git a/tests/t.py b/tests/t.py\n--- a/tests/t.py\n+++ b/tests/t.py\n@@ -1 +1 @@\n\rdiff --git a/tests/t.py b/tests/t.py\n',
    );
    expect(filterPatch(patch(), ['tests']).files).to.deep.equal(['a.py']);
  });

  describe('of other tools', () => {
    const diff = (): Buffer => {
      git('worktree', 'add', '-q', 'old', 'HEAD');
      rmSync(join(folder, 'old/.git'));
      const { stdout } = spawnSync('diff', ['-ruN', '-x', '.git', '-x', 'old', 'old', '.'], { cwd: folder });
      return stdout;
    };

    it('are read, too', () => {
      write('a.py', 'a.py\n1\n2\n3\n4\n');
      write('conftest.py', 'raise SystemExit\n');
      rmSync(join(folder, 'tests/t.py'));
      const { files, excluded, bytes } = filterPatch(diff(), ['conftest.py', 'tests/*']);
      expect([files, excluded]).to.deep.equal([['a.py'], ['conftest.py', 'tests/t.py']]);
      git('stash', '-qu');
      execFileSync('git', ['apply', '-p1'], { cwd: folder, input: bytes });
      expect(git('status', '--porcelain').toString().trim()).to.equal('M a.py');
    });

    it('are taken whole where they are no unified diff', () => {
      const other = Buffer.from('*** a/x\n--- b/x\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n');
      const { bytes, files } = filterPatch(other, ['x']);
      expect([Buffer.from(bytes), files]).to.deep.equal([other, []]);
    });
  });

  it('has nothing between its files that tells of others', () => {
    write('a.py', 'changed\n');
    const hidden = '--- a/tests/t.py\n+++ b/tests/t.py\n@@ -1 +1 @@\n-tests/t.py\n+passes\n';
    for (const more of [hidden, `\n${hidden}`, `Index: tests/t.py\n${hidden}`, `diff x y\n${hidden}`]) {
      const { files, excluded, bytes } = filterPatch(Buffer.concat([patch(), Buffer.from(more)]), ['tests']);
      expect([files, excluded]).to.deep.equal([['a.py'], ['tests/t.py']]);
      expect(Buffer.from(bytes).toString()).not.to.contain('tests/t.py');
    }
    const indented = Buffer.from(hidden.replaceAll(/^/gm, '  '));
    expect(Buffer.from(filterPatch(Buffer.concat([patch(), indented]), []).bytes)).to.deep.equal(patch());
  });

  it('reads headers in one pass, whatever is in them', () => {
    const forged = `diff --git "${'\\"'.repeat(400_000)}\n`;
    expect(filterPatch(Buffer.from(forged), []).excluded).to.deep.equal([]);
  });

  it('knows an empty one', () => {
    expect(isEmptyPatch(filterPatch(Buffer.from(''), []).bytes)).to.equal(true);
    expect(isEmptyPatch(Buffer.from(' \n\n'))).to.equal(true);
    write('x.pyc', 'x');
    expect(isEmptyPatch(filterPatch(patch(), EXCLUDED_ALWAYS).bytes)).to.equal(true);
    write('x.py', 'x');
    expect(isEmptyPatch(filterPatch(patch(), EXCLUDED_ALWAYS).bytes)).to.equal(false);
  });
});
