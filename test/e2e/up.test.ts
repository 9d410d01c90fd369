// kill -9 of `polar up` in the middle of a run: nothing is left, and the next start goes on where it was.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const GONE_MS = 40_000;

interface Up {
  readonly child: ChildProcess;
  readonly lines: string[];
  /** Resolves with the first line that fits. */
  seen(pattern: RegExp): Promise<string>;
}

describe('polar up that was killed', function () {
  this.timeout(180_000);
  let folder: string;
  const children: ChildProcess[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-up-'));
    mkdirSync(join(folder, 'tmp'));
  });
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    await sleep(100);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  function up(...flags: string[]): Up {
    const args = [join(ROOT, 'bin/polar.js'), 'up', '--data-dir', join(folder, 'data'), ...flags];
    const env = { ...process.env, TMPDIR: join(folder, 'tmp') };
    const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
    children.push(child);
    const lines: string[] = [];
    const waiting = new Set<() => void>();
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      for (const check of waiting) check();
    });
    const seen = (pattern: RegExp): Promise<string> =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          const found = lines.find((line) => pattern.test(line));
          if (found === undefined) return;
          waiting.delete(check);
          resolve(found);
        };
        waiting.add(check);
        child.once('exit', () => reject(new Error(`polar ended before ${pattern}:\n${lines.join('\n')}`)));
        check();
      });
    return { child, lines, seen };
  }

  /** Everything that still names this test's folder: processes, mounts, files of the temporary folder, cgroups. */
  function leftovers(): string[] {
    const processes = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .flatMap((pid) => {
        const told = ['cmdline', 'environ'].map((file) => readQuietly(`/proc/${pid}/${file}`)).join('');
        return told.includes(folder) || cwdOf(pid).startsWith(folder)
          ? [`process ${pid}: ${told.slice(0, 200)}`]
          : [];
      });
    const mounts = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .filter((line) => line.includes(folder));
    const files = readdirSync(join(folder, 'tmp')).map((name) => `temporary ${name}`);
    const nodes = join(folder, 'data/nodes');
    const boxes = namesBelow(nodes).filter((name) => /boxes\/.+/.test(name));
    return [...processes, ...mounts, ...files, ...boxes];
  }

  async function expectNothingLeft(): Promise<void> {
    const until = performance.now() + GONE_MS;
    while (leftovers().length > 0 && performance.now() < until) await sleep(100);
    expect(leftovers()).to.deep.equal([]);
  }

  it('leaves nothing, and the next start goes on with what was submitted', async () => {
    const first = up('--example');
    const task = /^task (\S+):/.exec(await first.seen(/^task /))?.[1] ?? '';
    await sleep(700);
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    await expectNothingLeft();
    const second = up();
    const url = /https?:\S+/.exec(await second.seen(/RolloutService/))?.[0] ?? '';
    const watched = spawn(
      process.execPath,
      [join(ROOT, 'bin/polar.js'), 'watch', task, '--rollout-url', url],
      {
        stdio: 'ignore',
      },
    );
    const [watchCode] = (await once(watched, 'exit')) as [number];
    expect(watchCode).to.equal(0);
    second.child.kill('SIGTERM');
    await once(second.child, 'exit');
    await expectNothingLeft();
  });
});

/** What is there; folders that are being removed meanwhile may be. */
function namesBelow(path: string): string[] {
  try {
    return readdirSync(path, { recursive: true, encoding: 'utf8' });
  } catch {
    return existsSync(path) ? ['boxes/…'] : [];
  }
}

function readQuietly(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function cwdOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
}
