import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { EXCLUDED_ALWAYS, filesOf, filterPatch, isEmptyPatch } from './patch.ts';

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

  it('names all of its files, where they are moved too, or none', () => {
    write('a.py', '2\n');
    write('ünï.py', '1\n');
    renameSync(join(folder, 'b c.py'), join(folder, 'moved.py'));
    expect(filesOf(patch('-M'))).to.have.members(['a.py', 'b c.py', 'moved.py', 'ünï.py']);
    expect(filesOf(Buffer.from('--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-1\n+2\n'))).to.equal(undefined);
    expect(filesOf(Buffer.from('no patch\n'))).to.equal(undefined);
  });

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

  it("leaves out git's own files, wherever they lie, and none that are only named alike", () => {
    const hunk = '@@ -0,0 +1 @@\n+x\n';
    const paths = ['.git/config', 'sub/.git', '.github/x', '.gitignore', 'x.git'];
    const text = paths.map((path) => `--- a/${path}\n+++ b/${path}\n${hunk}`).join('');
    const { files, excluded } = filterPatch(Buffer.from(text), EXCLUDED_ALWAYS);
    expect(excluded).to.deep.equal(paths.slice(0, 2));
    expect(files).to.deep.equal(paths.slice(2));
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
      const { bytes, files, isRead } = filterPatch(other, ['x']);
      expect([Buffer.from(bytes), files, isRead]).to.deep.equal([other, [], false]);
    });
  });

  describe('name their files', () => {
    const HUNK = '@@ -1 +1 @@\n-old\n+new\n';
    const read = (text: string): [string[], boolean] => {
      const { files, isRead } = filterPatch(Buffer.from(text, 'latin1'), ['tests']);
      return [[...files], isRead];
    };
    const unified = (old: string, fresh = old): string => `--- ${old}\n+++ ${fresh}\n${HUNK}`;

    it('in ways that git and `patch` read alike', () => {
      for (const name of [
        'a/x.py',
        'a/x.py\t',
        'a/x.py\t2024-01-01 00:00:00.000000000 +0000',
        'a/x.py\tThu Jan 01 00:00:00 1970 +0000',
        'old/x.py\t(revision 1)',
        '"a/\\170.py"',
        '"a/x.py"\t2024-01-01 00:00:00',
      ]) {
        expect(read(unified(name)), name).to.deep.equal([['x.py'], true]);
        expect(read(unified('/dev/null\t1970-01-01', name)), name).to.deep.equal([['x.py'], true]);
      }
      expect(read(unified('a/a b.py\t'))).to.deep.equal([['a b.py'], true]);
      expect(read(`diff --git "a/\\303\\274 b" "b/\\303\\274 b"\nold mode 100644\n`)[0]).to.deep.equal([
        'ü b',
      ]);
      const renamed = 'diff --git a/a b/a "b/\\303\\274"\nrename from a b/a\nrename to "\\303\\274"\n';
      expect(read(renamed)).to.deep.equal([['ü'], true]);
    });

    it('and in no other way', () => {
      const names = [
        '"a/te\\163ts/t.py" x',
        'a/tests/t.py 2024-01-01 00:00:00',
        'a/x y\tz 2024-01-01 00:00:00',
        'a/x\ty\t2024-01-01 00:00:00',
        'a/tests/t.py x',
        'a/x \t',
        'a/x\ry',
        'a/x\0y',
        '"a/x\\000y"',
        'a/"x"',
        'a/x\\y',
        '"a/x',
        'a//x',
        'a/./x',
        'a/../x',
        'a/y//x',
        '"a/y/\\056/x"',
        'a/x/',
        '/a/x',
        'x',
        '',
      ];
      for (const name of names) {
        expect(read(unified(name))[1], name).to.equal(false);
        expect(read(unified('/dev/null', name))[1], name).to.equal(false);
      }
    });

    it('alike wherever they name them', () => {
      for (const text of [
        unified('a/x', 'b/y'),
        unified('/dev/null'),
        `diff --git a/x b/x\n${unified('a/y', 'b/y')}`,
        `diff --git a/x b/x\n${unified('/dev/null', 'b/y')}`,
        'diff --git a/x b/y\nold mode 100644\nnew mode 100755\n',
        'diff --git a/x x b/x\nold mode 100644\nnew mode 100755\n',
        'diff --git a/x\tb/x\nold mode 100644\nnew mode 100755\n',
        'diff --git a/tests/t  b/tests/t \nold mode 100644\nnew mode 100755\n',
        'diff --git a/x b/y\nrename from x\nrename to z\n',
        'diff --git a/x b/y\nrename from x\n',
        'diff --git a/x b/y\nrename from x\nrename to y\nnew file mode 100644\n',
        `diff --git a/x b/y\nrename from x\nrename to y\n${unified('a/x')}`,
      ]) {
        expect(read(text)[1], text).to.equal(false);
        expect(read(`${unified('a/z')}${text}`)[1], text).to.equal(false);
      }
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
    for (const part of ['\\"', '" ', ' "', 'a/ ', '\t', ' 1-01-01']) {
      const forged = `diff --git "${part.repeat(400_000)}\n`;
      expect(filterPatch(Buffer.from(forged), []).isRead, part).to.equal(false);
      const unified = `--- ${part.repeat(400_000)}\n+++ "${part.repeat(400_000)}"\n@@ -1 +1 @@\n-a\n+b\n`;
      expect(filterPatch(Buffer.from(unified), []).isRead, part).to.equal(false);
    }
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
