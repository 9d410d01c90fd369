// Installs what a fresh machine lacks. Plain JavaScript without dependencies: it runs on Node 20 before npm has run.
//   node tools/setup.mjs start    what `npm start` needs
//   node tools/setup.mjs test     what `npm test` needs, too
//   node tools/setup.mjs deploy   what `npm run test:deploy` needs
//   node tools/setup.mjs harnesses what `npm run test:harnesses` needs
//   node tools/setup.mjs slurm    what `npm run test:slurm` needs
//   node tools/setup.mjs trainers what `npm run train:cpu` and `npm run test:trainers` need: torch, TRL and verl, 2.1 GB
// Each step looks first and does nothing when it is done; all together then take well under a second.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isBuilt } from './built.mjs';
import { cacheDir, ensureNatsServer, findNatsServer } from './nats-server.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const NODE_MIN = 20;
const PYTHON_MIN = [3, 10];
/** What a failed command said, from its end. */
const OUTPUT_LINES_MAX = 15;
const OUTPUT_CHARS_MAX = 1 << 20;
const PROGRESS_MS = 10_000;

const say = (text) => process.stderr.write(`setup: ${text}\n`);
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin'];
const onPath = (name) =>
  [...(process.env.PATH ?? '').split(delimiter), ...SYSTEM_FOLDERS].some((folder) =>
    existsSync(join(folder, name)),
  );
const seconds = (since) => `${((Date.now() - since) / 1000).toFixed(1)} s`;

/** Run a command; its output is shown only when it fails. */
async function run(what, command, args, env = process.env) {
  const started = Date.now();
  say(`${what} …`);
  const tick = setInterval(() => say(`${what}: ${seconds(started)} …`), PROGRESS_MS);
  try {
    const { code, output } = await ended(
      spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] }),
    );
    if (code !== 0) {
      const said = output.trim().split('\n').slice(-OUTPUT_LINES_MAX).join('\n');
      throw new Error(`${what} failed: ${command} ended with ${code}\n${said}`);
    }
    say(`${what}: done in ${seconds(started)}`);
  } finally {
    clearInterval(tick);
  }
}

function ended(child) {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output = (output + text).slice(-OUTPUT_CHARS_MAX);
    });
  }
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: error.message, output }));
    child.once('close', (code, signal) => resolve({ code: code ?? signal, output }));
  });
}

/**
 * Do `work` unless a stamp says that it was done for these files. It lies in what was made, and goes with it; `place` is that
 * of what cannot be used anywhere else.
 */
async function once(stamp, files, work, place = '') {
  const digest = createHash('sha256')
    .update(files.map((file) => readFileSync(join(root, file))).join('\0') + place)
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return;
  await work();
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, digest);
}

function checkVersions() {
  const node = Number.parseInt(process.versions.node, 10);
  if (node < NODE_MIN) throw new Error(`this is Node.js ${node}: version ${NODE_MIN} or newer is needed`);
  const wanted = `Python ${PYTHON_MIN.join('.')} or newer`;
  if (!onPath('python3')) throw new Error(`python3 is not on PATH: install ${wanted}`);
  const script = 'import sys; print(*sys.version_info[:2])';
  const version = execFileSync('python3', ['-c', script], { encoding: 'utf8' });
  const [major, minor] = version.trim().split(' ').map(Number);
  if (major > PYTHON_MIN[0] || (major === PYTHON_MIN[0] && minor >= PYTHON_MIN[1])) return;
  throw new Error(`python3 is ${major}.${minor}: ${wanted} is needed`);
}

const node = join(root, 'node_modules/node/bin/node');

async function npmPackages() {
  const stamp = join(root, 'node_modules/.polar-stamp');
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error'];
  await once(stamp, ['package-lock.json'], () => run('npm packages (npm ci)', 'npm', args));
  if (existsSync(node)) return;
  throw new Error(
    'npm did not install Node.js 24: let it run install scripts (no --ignore-scripts), then remove node_modules',
  );
}

/** Programs that start in half of the CPU. They run without, too. */
async function programs() {
  if (isBuilt()) return;
  const build = run('programs (esbuild)', node, [join(root, 'tools/build.mjs')]);
  await build.catch(({ message }) => say(`${message}\nsetup: programs start from their sources`));
}

/** The harness of the example, ahead of its first run. */
async function harness(name) {
  const adapter = `services/harness-executor/adapters/${name}.ts`;
  const install = join(root, 'services/harness-executor/install.ts');
  const stamp = join(cacheDir, 'harness', name, '.polar-stamp');
  await once(stamp, [adapter], () => run(`harness ${name}`, node, [install, name, '--cache-dir', cacheDir]));
}

/** The CLIs that the tests run, ahead of the tests. */
async function conformance() {
  const folders = ['test/conformance/clis', 'services/harness-executor/adapters'];
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder)).map((name) => `${folder}/${name}`),
  );
  const stamp = join(cacheDir, 'harness', '.conformance-stamp');
  const install = join(root, 'test/conformance/install.ts');
  await once(stamp, files, () => run('coding CLIs for the tests (1.7 GB)', node, [install]));
}

/** Apptainer, which Debian 12 does not have; the tests of it are left out where it cannot be had. */
async function apptainer() {
  const install = 'test/support/apptainer-install.ts';
  const stamp = join(cacheDir, 'apptainer', '.polar-stamp');
  try {
    // Its programs name their loader by its path.
    await once(stamp, [install], () => run('apptainer', node, [join(root, install)]), dirname(stamp));
  } catch (error) {
    say(`${error.message}\nsetup: tests of runtime apptainer are left out`);
  }
}

/** The trainers' Python environment. */
async function trainers() {
  const install = join(root, 'test/trainers/install.ts');
  const files = [
    'examples/train_cpu/requirements.txt',
    'test/trainers/environment.ts',
    'test/engines/setup/python.ts',
    'test/engines/setup/torch-without-cuda.py',
  ];
  const stamp = join(cacheDir, 'trainers', '.setup-stamp');
  await once(stamp, files, () => run('torch, TRL and verl (2.1 GB)', node, [install]));
}

/** Debian packages, where this may install them; POLAR_SETUP_SYSTEM=0 leaves the system alone. */
async function systemPackages(packages) {
  const missing = packages.filter(({ binary }) => !onPath(binary));
  if (missing.length === 0) return;
  const names = missing.map(({ name }) => name);
  const without = missing.map(({ binary, effect }) => `${binary} is not here: ${effect}`).join('\nsetup: ');
  const may = process.getuid?.() === 0 && onPath('apt-get') && process.env.POLAR_SETUP_SYSTEM !== '0';
  if (!may) return say(`${without}\nsetup: install them: ${names.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = ['-qq', 'install', '-y', '--no-install-recommends', ...names];
  try {
    await run('package lists (apt-get update)', 'apt-get', ['-qq', 'update'], env);
    await run(`${names.join(', ')} (apt-get install)`, 'apt-get', install, env);
  } catch (error) {
    say(`${error.message}\nsetup: ${without}`);
  }
}

const SYSTEM = [
  {
    binary: 'bwrap',
    name: 'bubblewrap',
    effect: 'runtime bubblewrap, which isolates, cannot be had; process, which does not, must be chosen',
  },
  { binary: 'git', name: 'git', effect: 'evaluator test_on_output needs git in the sandbox' },
  { binary: 'curl', name: 'curl', effect: 'examples of harness shell need curl in the sandbox' },
];

const TEST_SYSTEM = [
  ...SYSTEM,
  { binary: 'dockerd', name: 'docker.io', effect: 'tests of runtime docker are left out' },
  { binary: 'podman', name: 'podman', effect: 'tests of runtime podman are left out' },
  { binary: 'catatonit', name: 'catatonit', effect: 'tests of runtime podman are left out' },
  { binary: 'patchelf', name: 'patchelf', effect: 'tests of runtime apptainer are left out' },
  { binary: 'mksquashfs', name: 'squashfs-tools', effect: 'tests of runtime apptainer are left out' },
  { binary: 'openssl', name: 'openssl', effect: 'tests of TLS have no certificates' },
  { binary: 'ip', name: 'iproute2', effect: 'tests of isolation have no other machine to try to reach' },
];

const DEPLOY_SYSTEM = [
  ...TEST_SYSTEM,
  { binary: 'debootstrap', name: 'debootstrap', effect: 'there is no base image to build from' },
  { binary: 'docker-compose', name: 'docker-compose', effect: 'docker compose, its successor, is needed' },
];

const HARNESSES_SYSTEM = [
  ...TEST_SYSTEM,
  {
    binary: 'debootstrap',
    name: 'debootstrap',
    effect: 'there is no newer Python for harnesses that need one',
  },
];

const TRAINERS_SYSTEM = [
  ...SYSTEM,
  { binary: 'gcc', name: 'gcc', effect: 'torch cannot be had without CUDA libraries' },
  { binary: 'readelf', name: 'binutils', effect: 'torch cannot be had without CUDA libraries' },
];

const SLURM_SYSTEM = [
  ...SYSTEM,
  { binary: 'munged', name: 'munge', effect: 'there is no Slurm to run the mesh in' },
  { binary: 'slurmctld', name: 'slurmctld', effect: 'there is no Slurm to run the mesh in' },
  { binary: 'slurmd', name: 'slurmd', effect: 'there is no Slurm to run the mesh in' },
  { binary: 'sbatch', name: 'slurm-client', effect: 'there is no Slurm to run the mesh in' },
];

const PROFILES = {
  start: SYSTEM,
  test: TEST_SYSTEM,
  deploy: DEPLOY_SYSTEM,
  harnesses: HARNESSES_SYSTEM,
  slurm: SLURM_SYSTEM,
  trainers: TRAINERS_SYSTEM,
};

async function natsServer() {
  if (process.env.POLAR_NATS_URL || findNatsServer() !== undefined) return;
  ensureNatsServer((text) => say(`${text} …`));
}

/** One whose making broke off, as without Debian's python3-venv or on a full disk, has a python and no pip. */
const hasPip = (python) => spawnSync(python, ['-m', 'pip', '--version'], { stdio: 'ignore' }).status === 0;

async function pythonPackages() {
  const requirements = 'clients/python/requirements-test.txt';
  await once(join(root, '.venv/.polar-stamp'), [requirements], async () => {
    const python = join(root, '.venv/bin/python');
    if (!hasPip(python)) {
      await run('Python environment (.venv)', 'python3', ['-m', 'venv', '--clear', join(root, '.venv')]);
    }
    const args = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements];
    await run('Python packages', python, args);
  });
}

async function main(profile) {
  const packages = PROFILES[profile];
  if (packages === undefined) {
    throw new Error(`unknown profile ${profile}: ${Object.keys(PROFILES).join(', ')}`);
  }
  checkVersions();
  const system = systemPackages(packages);
  const test = () => Promise.all([conformance(), system.then(apptainer)]);
  const more = {
    test,
    harnesses: test,
    trainers: () => system.then(trainers),
  };
  const steps = [
    npmPackages().then(() => Promise.all([programs(), harness('pi'), more[profile]?.()])),
    system,
    natsServer(),
    ...(['start', 'slurm', 'trainers'].includes(profile) ? [] : [pythonPackages()]),
  ];
  const failures = (await Promise.allSettled(steps)).filter(({ status }) => status === 'rejected');
  if (failures.length > 0) throw new Error(failures.map(({ reason }) => reason.message).join('\nsetup: '));
}

try {
  await main(process.argv[2] ?? 'start');
} catch (error) {
  say(error.message);
  process.exitCode = 1;
}
