// `polar` as npm runs it, behind a shell that signals to npm end without a word to the command.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { ROOT, usersOf } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';

describe('polar under npm', function () {
  this.timeout(60_000);
  let folder: string;
  const started: ChildProcess[] = [];
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-npm-'));
    const command = `"${process.execPath}" "${join(ROOT, 'bin/polar.js')}" dashboard --port 0 --json -c ${folder}/none`;
    writeFileSync(join(folder, 'none'), '{}');
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts: { show: `true && ${command}` } }));
  });
  after(() => {
    for (const child of started) child.kill('SIGKILL');
    for (const user of usersOf(`${folder}/none`)) process.kill(Number.parseInt(user, 10), 'SIGKILL');
    rmSync(folder, { recursive: true });
  });

  const start = async (): Promise<ChildProcess> => {
    const child = spawn('npm', ['run', '--silent', 'show'], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    started.push(child);
    if (child.stdout !== null) await once(child.stdout, 'data');
    return child;
  };

  it('ends when npm is stopped or killed', async () => {
    const both = await Promise.all([start(), start()]);
    expect(usersOf(`${folder}/none`)).to.have.length.above(1);
    both[0]?.kill('SIGTERM');
    both[1]?.kill('SIGKILL');
    await eventually('nothing is left', () => usersOf(`${folder}/none`).length === 0);
  });
});
