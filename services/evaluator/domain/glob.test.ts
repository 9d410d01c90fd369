import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { findExpression, matchesPath } from './glob.ts';

const CASES: [pattern: string, yes: string[], no: string[]][] = [
  ['*.pyc', ['a.pyc', 'x/y/b.pyc'], ['a.py', 'a.pyc.txt', 'pyc']],
  ['__pycache__', ['__pycache__/a.pyc', 'x/__pycache__/y/z'], ['x/__pycache__s/a', 'a__pycache__']],
  ['__pycache__/', ['x/__pycache__/y'], ['x/pycache']],
  ['tests/*', ['tests/a.py', 'tests/a/b.py'], ['src/tests/a.py', 'tests']],
  ['/tests', ['tests/a.py'], ['x/tests/a.py']],
  ['./tests/a.py', ['tests/a.py'], ['tests/b.py']],
  ['src/**/gen', ['src/a/b/gen/x', 'src/gen', 'src/gen/x'], ['srcgen', 'lib/a/gen/x', 'src/a/agen']],
  ['**/conftest.py', ['conftest.py', 'a/conftest.py', 'a/b/conftest.py'], ['a/myconftest.py']],
  ['**/tests/**/*.py', ['tests/a.py', 'x/tests/a.py', 'x/tests/y/z/a.py'], ['x/mytests/a.py', 'tests/a']],
  ['a**/b', ['a/b', 'ax/y/b'], ['ab', 'b']],
  ['*/__pycache__/*', ['a/b/__pycache__/c.pyc'], ['__pycache__/c.pyc']],
  ['a?c', ['abc', 'x/abc'], ['ac', 'abbc']],
  ['[a-c]x', ['ax', 'cx'], ['dx', '-x']],
  ['[!a-c]x', ['dx'], ['ax']],
  ['[]]x', [']x'], ['x']],
  ['[x', ['[x'], ['x']],
  ['*', ['a', 'b/c'], []],
  ['a*b*c', ['abc', 'aXXbYYc', 'abbbc'], ['ab', 'acb']],
  ['a.c', ['a.c'], ['abc']],
  ['a\\b', ['x/a\\b/c'], ['ab']],
  ['ünï*', ['ünïcode.py'], ['unicode.py']],
];

describe('globs', () => {
  for (const [pattern, yes, no] of CASES) {
    it(pattern, () => {
      for (const path of yes) expect(matchesPath(pattern, path), path).to.equal(true);
      for (const path of no) expect(matchesPath(pattern, path), path).to.equal(false);
    });
  }

  it('mean the same to find', () => {
    const folder = mkdtempSync(join(tmpdir(), 'polar-test-glob-'));
    try {
      for (const [pattern, yes, no] of CASES) {
        for (const path of [...yes, ...no]) {
          rmSync(folder, { recursive: true });
          mkdirSync(dirname(join(folder, path)), { recursive: true });
          writeFileSync(join(folder, path), '');
          const { stdout } = spawnSync('find', ['.', ...findExpression(['no/such', pattern])], {
            cwd: folder,
          });
          expect(stdout.length > 0, `${pattern}: ${path}`).to.equal(yes.includes(path));
        }
      }
      expect(findExpression([])).to.deep.equal([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('ends on a pattern made to be slow', () => {
    expect(matchesPath(`${'**/'.repeat(1_000)}b`, `${'a/'.repeat(1_000)}a`)).to.equal(false);
    expect(matchesPath(`${'a*'.repeat(50)}b`, 'a'.repeat(4_000))).to.equal(false);
  });

  it('goes over a path a few times, however many folders it has', () => {
    const path = `${'a/'.repeat(300_000)}b`;
    for (const pattern of ['x', 'x/*', 'a/*c']) expect(matchesPath(pattern, path), pattern).to.equal(false);
    expect(matchesPath('a/*a/b', path)).to.equal(true);
  });
});
