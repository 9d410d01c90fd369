import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { eventually } from '../../../test/support/eventually.ts';
import { makeWheel } from '../../../test/support/wheel.ts';
import { sleep } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import type { Adapter } from '../adapters/adapter.ts';
import { pi } from '../adapters/pi.ts';
import { runCommand } from './command.ts';
import { ensureInstalled, installFolder, isInstalled } from './install.ts';
import { LIST } from './pip.ts';

const ENTRY = 'node_modules/polar-test-harness/cli.js';
const { signal } = new AbortController();

describe('harness installation', () => {
  let folder: string;
  let cache: string;
  let adapter: Adapter;
  let started: string[];
  const events = {
    started: (harness: string, version: string) => started.push(`${harness} ${version}`),
    progress: () => {},
    done: () => {},
  };
  const parentOf = (one: Adapter): string => join(installFolder(cache, one.name, one.version), '..');

  /** A package of this machine; `npm install` is the real one. */
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'polar-test-install-'));
    cache = join(folder, 'cache');
    started = [];
    const source = join(folder, 'source');
    mkdirSync(source);
    writeFileSync(join(source, 'package.json'), '{"name":"polar-test-harness","version":"1.0.0"}');
    writeFileSync(join(source, 'cli.js'), '');
    const version = `file:${source}`;
    adapter = { ...pi, version, install: { name: 'polar-test-harness', version, entry: ENTRY } };
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('happens once, whoever asks at the same time and later', async () => {
    expect(await isInstalled(cache, adapter)).to.equal(false);
    const asked = [1, 2, 3].map(() => ensureInstalled(cache, adapter, events, signal));
    const [one, ...others] = await Promise.all(asked);
    expect(others).to.deep.equal([one, one]);
    expect(await ensureInstalled(cache, adapter, events, signal)).to.equal(one);
    expect(started).to.deep.equal([`pi ${adapter.version}`]);
    expect(existsSync(join(one as string, ENTRY))).to.equal(true);
    expect(await isInstalled(cache, adapter)).to.equal(true);
    expect(readdirSync(parentOf(adapter))).to.deep.equal(['source']);
  });

  it('is not needed for a command of the task', async () => {
    const none = { ...adapter, install: undefined };
    expect(await isInstalled(cache, none)).to.equal(true);
    expect(await ensureInstalled(cache, none, events, signal)).to.equal(undefined);
  });

  describe('from PyPI', () => {
    let python: Adapter & { readonly python: string };
    beforeEach(() => {
      python = { ...pi, name: 'test', version: '1.0.0', install: makeWheel(folder), python: '3.11' };
    });

    it('is what its list says, and happens again when that has changed', async () => {
      const there = await ensureInstalled(cache, python, events, signal);
      expect(existsSync(join(there as string, 'polar_test_harness/cli.py'))).to.equal(true);
      expect(await isInstalled(cache, python)).to.equal(true);
      appendFileSync(python.install?.requirements as string, '# more\n');
      expect(await isInstalled(cache, python)).to.equal(false);
      await ensureInstalled(cache, python, events, signal);
      expect(await isInstalled(cache, python)).to.equal(true);
      expect(started).to.have.length(2);
    });

    it('can be read by the user of a sandbox, whatever the umask', async () => {
      const umask = process.umask(0o077);
      const there = await ensureInstalled(cache, python, events, signal).finally(() => process.umask(umask));
      const modeOf = (path: string): number => statSync(path).mode & 0o777;
      const below = readdirSync(there as string, { recursive: true, encoding: 'utf8' });
      const above = ['..', '../..', '../../..', '.'];
      const closed = [...above, ...below].filter(
        (name) => (modeOf(join(there as string, name)) & 0o044) !== 0o044,
      );
      expect(closed).to.deep.equal([]);
    });

    it('of versions that no session has asked for in a month goes with the next one', async () => {
      const agoS = (days: number): number => Date.now() / 1_000 - days * 86_400;
      const parent = parentOf(python);
      const { requirements, entry } = python.install!;
      const [old, again, recent] = ['1.1.0', '1.2.0', '1.3.0'].map((version) => `${version}-python3.11`) as [
        string,
        string,
        string,
      ];
      for (const version of [old, again, recent]) {
        mkdirSync(join(parent, version, dirname(entry)), { recursive: true });
        writeFileSync(join(parent, version, entry), '');
        writeFileSync(join(parent, version, LIST), readFileSync(requirements as string));
      }
      mkdirSync(join(parent, 'mine'));
      for (const name of [old, again, 'mine']) utimesSync(join(parent, name), agoS(31), agoS(31));
      utimesSync(join(parent, recent), agoS(29), agoS(29));
      // Asked for again.
      const asked = { ...python, install: { ...python.install!, version: '1.2.0' } };
      await ensureInstalled(cache, asked, events, signal);
      await ensureInstalled(cache, python, events, signal);
      expect(readdirSync(parent).sort()).to.deep.equal(['1.0.0-python3.11', again, recent, 'mine']);
    });

    it('that fails says what pip said', async () => {
      writeFileSync(python.install?.requirements as string, `${join(folder, 'none.whl')}\n`);
      const error = await ensureInstalled(cache, python, events, signal).catch((thrown) => thrown);
      expect(error).to.include({ reason: 'HARNESS_INSTALL_FAILED' });
      expect(error.message).to.contain('pip ended with exit code 1').and.contain('none.whl');
      expect(readdirSync(parentOf(python))).to.deep.equal([]);
    });
  });

  it('that fails says what to do, and leaves nothing', async () => {
    const version = `file:${join(folder, 'nowhere')}`;
    const missing = { ...adapter, version, install: { name: 'polar-test-harness', version, entry: ENTRY } };
    const asked = [1, 2, 3].map(() =>
      ensureInstalled(cache, missing, events, signal).catch((thrown) => thrown),
    );
    const [error, ...others] = await Promise.all(asked);
    // Tried once for all who waited for it.
    expect(others).to.deep.equal([error, error]);
    expect(started).to.have.length(1);
    expect(error).to.be.instanceOf(PolarError);
    expect(error).to.include({ reason: 'HARNESS_INSTALL_FAILED', retryable: true });
    expect(error.message).to.contain('install.ts pi');
    expect(readdirSync(parentOf(missing))).to.deep.equal([]);
  });

  it('without the program in it is no installation', async () => {
    const { install } = adapter;
    const other = { ...adapter, install: { ...install!, entry: 'node_modules/polar-test-harness/other.js' } };
    const error = await ensureInstalled(cache, other, events, signal).catch((thrown) => thrown);
    expect(error.message).to.contain('other.js');
    expect(await isInstalled(cache, other)).to.equal(false);
  });

  it('does not wait for what its commands leave behind', async () => {
    const left = join(folder, 'left');
    const stop = new AbortController();
    const script = `sleep 60 & echo $! > ${left}; echo done`;
    const limit = setTimeout(() => stop.abort(), 5_000);
    const { exitCode, outputTail } = await runCommand(folder, ['sh', '-c', script], stop.signal);
    clearTimeout(limit);
    expect([exitCode, outputTail]).to.deep.equal([0, 'done']);
    const pid = readFileSync(left, 'utf8').trim();
    await eventually('it is gone', () => !existsSync(`/proc/${pid}/fd/0`));
  });

  it('ends with its process, however that ends', async () => {
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    const npm = join(bin, 'npm');
    // As slow as an installation can be.
    writeFileSync(npm, `#!/bin/sh\necho $$ > ${folder}/pid\nexec sleep 60\n`);
    chmodSync(npm, 0o755);
    for (const how of ['SIGKILL', 'SIGTERM'] as const) {
      const script = join(import.meta.dirname, '..', 'install.ts');
      const child = spawn(process.execPath, [script, 'pi', '--cache-dir', join(folder, how)], {
        env: { ...process.env, PATH: `${bin}:${process.env['PATH']}` },
        stdio: 'ignore',
      });
      const exited = once(child, 'exit');
      while (!existsSync(join(folder, 'pid'))) await sleep(10);
      await sleep(50);
      const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
      child.kill(how);
      await exited;
      for (let tries = 0; existsSync(`/proc/${pid}/stat`); tries++) {
        expect(tries, `${how} left npm`).to.be.lessThan(3_000);
        await sleep(10);
      }
      rmSync(join(folder, 'pid'));
    }
  });

  it('that is killed leaves nothing when the next one is done, and what another version has made so far stays', async () => {
    const { name, version, install } = pi;
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    const npm = join(bin, 'npm');
    const env = { ...process.env, PATH: `${bin}:${process.env['PATH']}` };
    const start = (script: string) => {
      writeFileSync(npm, `#!/bin/sh\n${script}\n`);
      chmodSync(npm, 0o755);
      const main = join(import.meta.dirname, '..', 'install.ts');
      return spawn(process.execPath, [main, 'pi', '--cache-dir', cache], { env, stdio: 'ignore' });
    };
    const killed = start(`echo > ${folder}/begun; exec sleep 60`);
    const exited = once(killed, 'exit');
    await eventually('it has begun', () => existsSync(join(folder, 'begun')));
    killed.kill('SIGKILL');
    await exited;
    const parent = join(installFolder(cache, name, version), '..');
    expect(readdirSync(parent).filter((one) => one.startsWith('.tmp-'))).to.have.length(1);
    // As who waits for it does when it was not touched for 15 s.
    rmSync(join(parent, `${version}.lock`));
    const other = `.tmp-${version}-rc-abcdef`;
    mkdirSync(join(parent, other));
    const entry = install?.entry ?? '';
    const [code] = await once(start(`mkdir -p $(dirname ${entry}) && touch ${entry}`), 'exit');
    expect(code).to.equal(0);
    expect(readdirSync(parent).sort()).to.deep.equal([other, version].sort());
  });
});
