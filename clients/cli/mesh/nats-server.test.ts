// What runs nats-server, with a command of the test's own in its place.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { usersOf } from '../../../test/support/cli.ts';
import { eventually } from '../../../test/support/eventually.ts';

const SCRIPT = join(import.meta.dirname, 'nats-server.sh');

describe('nats-server of a local mesh', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-nats-server-'));
  });
  const seconds = `600.${process.pid}`;
  afterEach(() => {
    for (const one of usersOf(seconds)) process.kill(Number.parseInt(one, 10), 'SIGKILL');
    rmSync(folder, { recursive: true });
  });

  const start = () => {
    const lock = join(folder, 'lock');
    const shell = spawn('/bin/sh', [SCRIPT, lock, '1', 'sleep', seconds], {
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    });
    const shells = (): string[] => usersOf(lock);
    const server = (): string[] => usersOf(seconds).filter((one) => !one.includes(lock));
    return { shell, shells, server };
  };

  it('ends when those who need it are gone', async () => {
    const { shell, server } = start();
    await eventually('it runs', () => server().length === 1);
    shell.stdio[3]?.destroy();
    await once(shell, 'exit');
    expect(server()).to.deep.equal([]);
  });

  it('ends when both shells are killed that would end it', async () => {
    const { shells, server } = start();
    await eventually('it runs, and is watched', () => server().length === 1 && shells().length === 2);
    for (const one of shells()) process.kill(Number.parseInt(one, 10), 'SIGKILL');
    await eventually('it ends', () => server().length === 0);
  });
});
