// The README as a newcomer follows it: its marked blocks, as they stand, in a copy of nothing but this checkout.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect } from 'chai';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..');
const SHOWN = [
  'bin',
  'clients',
  'examples',
  'gen',
  'node_modules',
  'services',
  'test',
  'tools',
  'package.json',
];

/** The shell block that follows `<!-- tested: NAME -->`. */
function block(name: string): string {
  const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
  const found = new RegExp(`<!-- tested: ${name} -->\\n\`\`\`sh\\n([\\s\\S]*?)\`\`\``).exec(readme)?.[1];
  if (found === undefined) throw new Error(`README.md has no tested block ${name}`);
  return found;
}

describe('the README', function () {
  this.timeout(240_000);
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-readme-'));
  let stop: () => Promise<void> = async () => {};
  const env: NodeJS.ProcessEnv = { ...process.env };

  before(async () => {
    for (const name of SHOWN) symlinkSync(join(ROOT, name), join(folder, name));
    // npx looks for the command in the checkout; the links here would be another place to it.
    mkdirSync(join(folder, 'bin-path'));
    const shim = `#!/bin/sh\nshift\nexec ${process.execPath} ${join(ROOT, 'bin/polar.js')} "$@"\n`;
    writeFileSync(join(folder, 'bin-path/npx'), shim, { mode: 0o755 });
    const mesh = spawn(
      process.execPath,
      [join(ROOT, 'bin/polar.js'), 'up', '--json', '--data-dir', join(folder, 'data')],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    stop = async () => {
      if (mesh.exitCode !== null) return;
      mesh.kill('SIGTERM');
      await once(mesh, 'exit');
    };
    const ended = once(mesh, 'exit').then(([code]) =>
      Promise.reject(new Error(`polar up ended with ${code}`)),
    );
    const first = once(createInterface({ input: mesh.stdout }), 'line');
    const [line] = (await Promise.race([first, ended])) as [string];
    ended.catch(() => {});
    const { addresses } = JSON.parse(line) as { addresses: Record<string, string> };
    const find = (word: string): string | undefined =>
      Object.entries(addresses).find(([name]) => name.includes(word))?.[1];
    Object.assign(env, {
      PATH: `${join(folder, 'bin-path')}:${process.env['PATH']}`,
      HOME: join(folder, 'home'),
      POLAR_ROLLOUT_URL: find('RolloutService'),
      POLAR_TRAJECTORY_URL: find('TrajectoryService'),
    });
    mkdirSync(join(folder, 'home'));
  });
  after(async () => {
    await stop();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  const follow = (name: string) => run('sh', ['-ec', block(name)], { cwd: folder, env, maxBuffer: 1 << 26 });

  it('leads to a first task of one’s own, graded', async () => {
    const { stdout } = await follow('first task');
    expect(stdout.match(/COMPLETED +1\.00/g), stdout).to.have.length(4);
  });

  it('exports calls and traces that obey the laws', async () => {
    expect((await follow('export')).stdout).to.contain('all laws hold');
  });

  it('asks a mesh by curl', async () => {
    const asked = block('curl').replace('http://127.0.0.1:8080', env['POLAR_ROLLOUT_URL'] ?? '');
    const { stdout } = await run('sh', ['-ec', asked], { cwd: folder, env });
    expect(JSON.parse(stdout).sessions).to.have.length(4);
  });

  it('installs the Python client and feeds a trainer', async () => {
    const { stdout } = await follow('trainer');
    expect(stdout).to.contain('reward 1.000');
  });
});
