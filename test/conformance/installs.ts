// The CLIs in the cache, each in the one version that its file pins.
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { HARNESS_INSTALL_MS } from '../../services/common/limits.ts';
import {
  ensureInstalled,
  type InstallEvents,
  installFolder,
} from '../../services/harness-executor/installs/install.ts';
import { withLock } from '../../services/harness-executor/installs/lock.ts';
import { type Cli, type PythonPackage, SANDBOX_PYTHON } from './clis/cli.ts';

export const CACHE = process.env['POLAR_CACHE_DIR'] ?? join(import.meta.dirname, '../../.cache');

/** A copy of what was asked for, in what was made of it. */
const LIST = 'requirements.txt';

export interface Installed {
  /** On this machine. */
  readonly folder: string;
  /** The file to run, below it. */
  readonly entry: string;
}

/** Install a CLI unless it is there. Throws where what is there calls itself another version. */
export async function installed(cli: Cli, events: InstallEvents): Promise<Installed> {
  const found = await ensure(cli, events);
  const version = versionIn(cli, found);
  if (version === cli.version) return found;
  throw new Error(`${cli.name} in ${found.folder} is ${version}, not ${cli.version}: remove that folder`);
}

function versionIn({ install }: Cli, { folder }: Installed): string | undefined {
  if ('npm' in install) {
    const text = readFileSync(join(folder, 'node_modules', install.npm.name, 'package.json'), 'utf8');
    return (JSON.parse(text) as { version: string }).version;
  }
  const name = install.python.name.replaceAll('-', '_');
  const described = readdirSync(folder).find(
    (one) => one.startsWith(`${name}-`) && one.endsWith('.dist-info'),
  );
  return described?.slice(name.length + 1, -'.dist-info'.length);
}

async function ensure({ name, install }: Cli, events: InstallEvents): Promise<Installed> {
  const signal = AbortSignal.timeout(HARNESS_INSTALL_MS);
  if ('npm' in install) {
    const folder = await ensureInstalled(CACHE, { name, install: install.npm }, events, signal);
    return { folder: folder as string, entry: install.npm.entry };
  }
  const folder = installFolder(CACHE, name, install.python.version);
  await mkdir(join(folder, '..'), { recursive: true });
  await withLock(`${folder}.lock`, signal, () => pythonInto(folder, install.python, events));
  return { folder, entry: install.python.entry };
}

async function pythonInto(folder: string, python: PythonPackage, events: InstallEvents): Promise<void> {
  if (isWhole(folder, python)) return;
  const started = performance.now();
  events.started(python.name, python.version);
  const temp = await mkdtemp(join(folder, '..', '.tmp-'));
  try {
    await chmod(temp, 0o755);
    const how = ['--quiet', '--disable-pip-version-check', '--no-deps'];
    const wheels = ['--only-binary=:all:', '--python-version', sandboxPython()];
    const args = ['install', ...how, ...wheels, '--target', temp, '-r', python.requirements];
    await promisify(execFile)('python3', ['-m', 'pip', ...args]);
    await copyFile(python.requirements, join(temp, LIST));
    await rm(folder, { recursive: true, force: true });
    await rename(temp, folder);
  } finally {
    await rm(temp, { recursive: true, force: true });
  }
  events.done(python.name, Math.round(performance.now() - started));
}

/** All that is listed now was installed. */
const isWhole = (folder: string, { requirements, entry }: PythonPackage): boolean =>
  existsSync(join(folder, entry)) &&
  existsSync(join(folder, LIST)) &&
  readFileSync(requirements).equals(readFileSync(join(folder, LIST)));

/** Of the Python that a sandbox sees. */
const sandboxPython = (): string =>
  execFileSync(SANDBOX_PYTHON, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], {
    encoding: 'utf8',
  }).trim();
