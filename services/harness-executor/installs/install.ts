// Harness programs in the node's cache, installed once each: into a temporary folder, then renamed to its place.
import { access, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Deadline } from '../../common/clock.ts';
import { PolarError } from '../../common/errors.ts';
import { makeFolders } from '../../common/folders.ts';
import { HARNESS_INSTALL_MS } from '../../common/limits.ts';
import { isShortage } from '../../common/shortage.ts';
import type { Adapter, HarnessPackage } from '../adapters/adapter.ts';
import { type CommandEnd, runCommand } from './command.ts';
import { withLock } from './lock.ts';
import { npmInstall } from './npm.ts';
import { LIST, pipInstall } from './pip.ts';
import { noteUse, removeUnused } from './unused.ts';

/** What is to be installed, under its name. */
export interface Installable extends Pick<Adapter, 'install'> {
  readonly name: string;
  /** Version of the Python that it is to run on, as `3.12`, where it comes from PyPI. */
  readonly python?: string | undefined;
}

export interface InstallEvents {
  started(harness: string, version: string): void;
  /** Every few seconds. */
  progress(harness: string, elapsedMs: number): void;
  done(harness: string, elapsedMs: number): void;
}

const PROGRESS_MS = 3_000;
const TEMP_PREFIX = '.tmp-';
/** Between a version and that of the Python that it is for. */
const FOR_PYTHON = '-python';
/** What mkdtemp puts behind the name that it is given. */
const TEMP_RANDOM_CHARS = 6;
/** Commands of a sandbox run under another user, to whom nothing here may be closed, whatever this process's umask. */
const READABLE = 0o755;
const MAKE_READABLE = ['chmod', '-R', 'a+rX', '.'];

/** Where an installation lies, whether or not it is there. */
export const installFolder = (cacheDir: string, name: string, version: string, python?: string): string =>
  join(cacheDir, 'harness', name, python === undefined ? version : `${version}${FOR_PYTHON}${python}`);

/** True when nothing is to be installed, or all of it is there. Throws HARNESS_INSTALL_FAILED where that cannot be told. */
export async function isInstalled(
  cacheDir: string,
  { name, install, python }: Installable,
): Promise<boolean> {
  if (install === undefined) return true;
  return await isWhole(installFolder(cacheDir, name, install.version, python), install).catch((error) => {
    throw failed(name, install, error.message, error);
  });
}

/**
 * The program is there, and where a list says what belongs to it, what was installed is that list. Throws where the node is
 * short of what that takes: what is there would else be made anew, under those who use it.
 */
async function isWhole(folder: string, { entry, requirements }: HarnessPackage): Promise<boolean> {
  if (!(await exists(join(folder, entry)))) return false;
  if (requirements === undefined) return true;
  const [wanted, there] = await Promise.all([
    readFile(requirements, 'utf8'),
    readFile(join(folder, LIST), 'utf8').catch(noneUnlessShort),
  ]);
  return wanted === there;
}

/** The same of a harness: for one version of Python at least, where it runs on one. */
export async function isInstalledForSome(cacheDir: string, { name, install }: Adapter): Promise<boolean> {
  if (install?.requirements === undefined) return await isInstalled(cacheDir, { name, install });
  const begin = `${install.version}${FOR_PYTHON}`;
  const names = (await readdir(join(cacheDir, 'harness', name)).catch(noneUnlessShort)) ?? [];
  const pythons = names.filter((one) => one.startsWith(begin)).map((one) => one.slice(begin.length));
  const there = pythons.map((python) => isInstalled(cacheDir, { name, install, python }));
  return (await Promise.all(there)).includes(true);
}

type Wanted = Installable & { readonly install: HarnessPackage };

/** Installations at work in this process, by folder. */
const installing = new Map<string, Promise<void>>();

/**
 * Install what an adapter needs, unless it is there: once for all who ask at the same time, also where it fails. Returns its
 * folder, undefined where nothing is needed. Throws HARNESS_INSTALL_FAILED, which says what to do.
 */
export async function ensureInstalled(
  cacheDir: string,
  what: Installable,
  events: InstallEvents,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { name, install, python } = what;
  if (install === undefined) return undefined;
  if (install.requirements !== undefined && python === undefined)
    throw new Error(`${name} is for which Python?`);
  const folder = installFolder(cacheDir, name, install.version, python);
  if (await isInstalled(cacheDir, what)) {
    await noteUse(folder);
    return folder;
  }
  let work = installing.get(folder);
  if (work === undefined) {
    work = installAt(cacheDir, { name, install, python }, events, signal).finally(() =>
      installing.delete(folder),
    );
    installing.set(folder, work);
  }
  await work;
  return folder;
}

/** Behind the lock of all processes of the machine. */
async function installAt(
  cacheDir: string,
  { name, install, python }: Wanted,
  events: InstallEvents,
  signal: AbortSignal,
): Promise<void> {
  using deadline = new Deadline(HARNESS_INSTALL_MS, signal);
  const folder = installFolder(cacheDir, name, install.version, python);
  try {
    for (const way of [cacheDir, join(folder, '../..'), join(folder, '..')]) makeFolders(way, READABLE);
    await withLock(`${folder}.lock`, deadline.signal, async () => {
      if (await isWhole(folder, install)) return;
      const startedAt = performance.now();
      const elapsedMs = (): number => Math.round(performance.now() - startedAt);
      events.started(name, install.version);
      const tick = setInterval(() => events.progress(name, elapsedMs()), PROGRESS_MS);
      try {
        await installInto(folder, { name, install, python }, deadline.signal);
      } finally {
        clearInterval(tick);
      }
      events.done(name, elapsedMs());
    });
    await removeUnused(folder, deadline.signal).catch(() => {});
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof PolarError) throw error;
    throw failed(name, install, deadline.isOver ? 'it took too long' : (error as Error).message, error);
  }
}

async function installInto(
  folder: string,
  { name, install, python }: Wanted,
  signal: AbortSignal,
): Promise<void> {
  const parent = join(folder, '..');
  const own = `${TEMP_PREFIX}${basename(folder)}-`;
  await removeAbandoned(parent, own);
  const temp = await mkdtemp(join(parent, own));
  try {
    const { exitCode, outputTail } = await fetchInto(temp, install, python, signal);
    // Another process may have come first, where a lock was taken over.
    if (await isWhole(folder, install)) return;
    if (exitCode !== 0) {
      throw failed(name, install, `${managerOf(install)} ended with exit code ${exitCode}: ${outputTail}`);
    }
    if (!(await exists(join(temp, install.entry)))) throw failed(name, install, `it has no ${install.entry}`);
    await rm(folder, { recursive: true, force: true });
    await rename(temp, folder);
  } finally {
    await rm(temp, { recursive: true, force: true });
  }
}

async function fetchInto(
  folder: string,
  install: HarnessPackage,
  python: string | undefined,
  signal: AbortSignal,
): Promise<CommandEnd> {
  const end = await fetchWith(folder, install, python, signal);
  return end.exitCode === 0 ? await runCommand(folder, MAKE_READABLE, signal) : end;
}

async function fetchWith(
  folder: string,
  install: HarnessPackage,
  python: string | undefined,
  signal: AbortSignal,
): Promise<CommandEnd> {
  const { requirements } = install;
  if (requirements !== undefined) return await pipInstall(folder, python ?? '', requirements, signal);
  await writeFile(join(folder, 'package.json'), '{"private":true}\n');
  return await npmInstall(folder, install, signal);
}

const managerOf = ({ requirements }: HarnessPackage): string => (requirements === undefined ? 'npm' : 'pip');

/** What killed installations left: of this version, whose lock is held, and of others, which are never this old at work. */
async function removeAbandoned(parent: string, own: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(TEMP_PREFIX)) continue;
    const path = join(parent, name);
    const isOwn = name.startsWith(own) && name.length === own.length + TEMP_RANDOM_CHARS;
    if (isOwn || (await isOld(path))) await rm(path, { recursive: true, force: true });
  }
}

/** Undone meanwhile where it is not there. */
const isOld = (path: string): Promise<boolean> =>
  stat(path).then(
    ({ mtimeMs }) => Date.now() - mtimeMs > HARNESS_INSTALL_MS,
    () => false,
  );

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    (error) => noneUnlessShort(error) ?? false,
  );

function noneUnlessShort(error: unknown): undefined {
  if (isShortage(error)) throw error;
}

const failed = (harness: string, install: HarnessPackage, why: string, cause?: unknown): PolarError =>
  new PolarError(
    'HARNESS_INSTALL_FAILED',
    `${install.name}@${install.version} could not be installed: ${why}. Check that ${managerOf(install)} is there and reaches its registry; \`npx node services/harness-executor/install.ts ${harness}\` tries it ahead of time`,
    { cause },
  );
