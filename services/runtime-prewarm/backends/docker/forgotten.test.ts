import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { Forgotten } from './forgotten.ts';

/** Stands for a shim: it is found by its command line alone. */
function shim(id: string): ChildProcess {
  const args = ['-e', 'setInterval(() => {}, 1e6)', '--', '-namespace', 'moby', '-id', id];
  return spawn(process.execPath, args, { argv0: '/usr/bin/containerd-shim-runc-v2', stdio: 'ignore' });
}

describe('containers that an engine forgot', () => {
  const ids = [0, 1, 2].map(() => randomBytes(32).toString('hex')) as [string, string, string];
  const folder = join(mkdtempSync(join(tmpdir(), 'polar-test-forgotten-')), 'starts');
  let shims: ChildProcess[];

  before(async () => {
    shims = ids.map(shim);
    await Promise.all(shims.map((one) => once(one, 'spawn')));
  });
  after(() => {
    for (const one of shims) one.kill('SIGKILL');
    rmSync(dirname(folder), { recursive: true });
  });

  it('end, and those that it knows and those that were over before it went do not', async () => {
    const [lost, known, over] = ids;
    const before = new Forgotten(folder);
    for (const id of ids) before.begins(id);
    await before.end([over], new Set());
    const ended = once(shims[0] as ChildProcess, 'exit');
    before.engineWent();
    await before.end(before.begun, new Set([known]));
    expect((await ended)[1]).to.equal('SIGKILL');
    expect(shims.slice(1).map(({ exitCode, signalCode }) => exitCode ?? signalCode)).to.eql([null, null]);
    // The manager is killed meanwhile, and the engine deletes what it knew as well as it can.
    const after = new Forgotten(folder);
    expect(after.begun).to.have.members([lost, known]);
    const later = once(shims[1] as ChildProcess, 'exit');
    await after.end(after.begun, new Set());
    await later;
    expect((shims[2] as ChildProcess).signalCode).to.equal(null);
    for (let look = 0; look < 2; look++) await after.end(after.begun, new Set());
    expect([after.begun, readdirSync(folder)]).to.eql([[], []]);
  });
});
