import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { asShell } from './shell.ts';

describe('shell commands for what a script wants', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-shell-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const run = (command: string): string =>
    execFileSync('bash', ['-c', command], { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
  const path = "it's a file.txt";
  const content = 'first "line" $HOME `x`\n  END\nEND\nlast \\n é 😀\n';

  it('write and read a file', () => {
    run(asShell({ write: { path, content } }));
    expect(readFileSync(join(folder, path), 'utf8')).to.equal(content);
    expect(run(asShell({ read: path }))).to.equal(content);
  });

  it('edit the one place that matches, and no other', () => {
    writeFileSync(join(folder, path), content);
    run(asShell({ edit: { path, old: 'last \\n é 😀', new: 'now \'this\' "there"\n\tü' } }));
    expect(readFileSync(join(folder, path), 'utf8')).to.contain('now \'this\' "there"\n\tü\n');
    expect(() => run(asShell({ edit: { path, old: 'END', new: '' } }))).to.throw('2 places match');
  });

  it('edit a file at once, and lose no edit', () => {
    const names = Array.from({ length: 8 }, (_, i) => `place-${i}`);
    writeFileSync(join(folder, path), names.join('\n'));
    const edits = names.map((old) => asShell({ edit: { path, old, new: `done-${old}` } }));
    run(`${edits.map((edit) => `(${edit}\n) &`).join('\n')}\nwait`);
    expect(readFileSync(join(folder, path), 'utf8')).to.equal(names.map((name) => `done-${name}`).join('\n'));
  });
});
