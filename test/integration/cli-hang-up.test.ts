// What the end of a terminal does to a command that stays: it ends, but where it was started to outlive its terminal.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { ROOT, usersOf } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';

describe('polar and hang-ups', function () {
  this.timeout(60_000);
  let folder: string;
  let topology: string;
  let command: string;
  const started: ChildProcess[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-hang-up-'));
    topology = join(folder, 'topology.yaml');
    writeFileSync(topology, '{}');
    command = `"${process.execPath}" "${join(ROOT, 'bin/polar.js')}" dashboard --port 0 --json -c ${topology}`;
  });
  afterEach(() => {
    for (const child of started) child.kill('SIGKILL');
    for (const user of usersOf(topology)) process.kill(Number.parseInt(user, 10), 'SIGKILL');
    rmSync(folder, { recursive: true });
  });

  /** In a terminal of its own, which is gone when what is returned is killed. */
  const inTerminal = (line: string): ChildProcess => {
    const child = spawn('script', ['-qec', line, '/dev/null'], { stdio: ['ignore', 'ignore', 'inherit'] });
    started.push(child);
    return child;
  };
  const text = (file: string): string => {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      return '';
    }
  };

  it('goes on under nohup when its terminal is gone, and ends when it is told to', async () => {
    const out = join(folder, 'out');
    const terminal = inTerminal(`nohup ${command} > ${out}; true`);
    await eventually('it listens', () => text(out).includes('\n'));
    terminal.kill('SIGKILL');
    await once(terminal, 'exit');
    const [user = ''] = usersOf(topology).filter(
      (one) => one.includes('polar.js') && !one.includes('nohup '),
    );
    const pid = Number.parseInt(user, 10);
    // The terminal's own came already: one more is seen before the last of these answers comes.
    process.kill(pid, 'SIGHUP');
    const { url } = JSON.parse(text(out)) as { url: string };
    for (let i = 0; i < 5; i++) expect((await fetch(url)).status).to.equal(200);
    process.kill(pid, 'SIGTERM');
    await eventually('it ends', () => usersOf(topology).length === 0);
  });

  it('ends with its terminal else', async () => {
    const out = join(folder, 'out');
    const terminal = inTerminal(`${command} | tee ${out}`);
    await eventually('it listens', () => text(out).includes('\n'));
    terminal.kill('SIGKILL');
    await eventually('it ends', () => usersOf(topology).length === 0);
  });
});
