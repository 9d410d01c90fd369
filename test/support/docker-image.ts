// A root file system for containers out of the host's own programs: nothing is fetched.
import { execFile } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { findTool, SYSTEM_PATH } from '../../services/runtime-prewarm/host/tools.ts';

const run = promisify(execFile);
const PROGRAMS = [
  ...[
    'sh',
    'bash',
    'mktemp',
    'cat',
    'sleep',
    'ls',
    'mkdir',
    'rm',
    'cp',
    'mv',
    'pwd',
    'printf',
    'echo',
    'true',
    'false',
    'id',
    'env',
  ],
  ...[
    'kill',
    'touch',
    'dd',
    'head',
    'tail',
    'sed',
    'grep',
    'tr',
    'sort',
    'chmod',
    'ln',
    'readlink',
    'setsid',
    'seq',
  ],
  ...[
    'wc',
    'od',
    'date',
    'nohup',
    'ps',
    'dirname',
    'basename',
    'tee',
    'stat',
    'mkfifo',
    'python3',
    'git',
    'curl',
  ],
];
/** Where merged into /usr, names of the file system that programs are found by. */
const LINKS = ['/bin', '/sbin', '/lib', '/lib64'];
const C_LIBRARY = /^lib(dl|m|pthread|resolv|rt|util|nss_\w+)\.so\.\d+$/;

/** Arguments of `tar -c`; `stage` is made and holds what is not the host's. */
export async function hostPrograms(stage: string): Promise<string[]> {
  for (const folder of ['etc', 'root', 'home', 'proc', 'sys', 'dev', 'tmp', 'var/tmp']) {
    mkdirSync(join(stage, folder), { recursive: true });
  }
  for (const folder of ['tmp', 'var/tmp']) chmodSync(join(stage, folder), 0o1777);
  writeFileSync(join(stage, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  const programs = PROGRAMS.map((name) => findTool(name, SYSTEM_PATH)).filter((path) => path !== undefined);
  const python = findTool('python3', SYSTEM_PATH) ?? 'python3';
  const ask =
    'import sysconfig, glob; p = sysconfig.get_path("stdlib"); print(p, *glob.glob(p + "/lib-dynload/*.so"))';
  const { stdout } = await run(python, ['-ISc', ask]);
  const [stdlib = '', ...modules] = stdout.trim().split(' ');
  // This Node.js is shown to sandboxes that need it; its libraries are the image's.
  const libraries = await librariesOf([...programs, ...modules, process.execPath]);
  const files = [...programs, ...libraries, ...ofTheCLibrary(libraries)].flatMap(withTarget);
  const links = LINKS.filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink());
  const left = ['__pycache__', 'test', 'dist-packages', 'ensurepip', 'idlelib'].map(
    (name) => `--exclude=${name}`,
  );
  const paths = [...new Set([...links, ...files])].map((path) => path.slice(1));
  return [...left, '-C', stage, '.', '-C', '/', stdlib.slice(1), ...paths];
}

async function librariesOf(programs: readonly string[]): Promise<string[]> {
  // It fails for a script, and tells of the others all the same.
  const { stdout } = await run('ldd', programs.map(real)).catch((error) => error as { stdout: string });
  return [...stdout.matchAll(/(?:=> |^\s+)(\/\S+) \(/gm)].map(([, path = '']) => path);
}

/** What programs that were linked elsewhere expect beside it: it was one library of several once. */
function ofTheCLibrary(libraries: readonly string[]): string[] {
  const folder = dirname(libraries.find((path) => basename(path) === 'libc.so.6') ?? '/lib/libc.so.6');
  return readdirSync(folder)
    .filter((name) => C_LIBRARY.test(name))
    .map((name) => join(folder, name));
}

/** A file by its name, without links on the way to it, and what it links to. */
function withTarget(path: string): string[] {
  return [join(real(dirname(path)), basename(path)), real(path)];
}

const real = (path: string): string => realpathSync(path);
