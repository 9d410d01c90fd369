// A Docker engine for a test: the one that runs, or our own dockerd in a temporary folder, without bridge or firewall
// rules. Containers use the host's loopback.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '../../services/common/clock.ts';

const run = promisify(execFile);
const START_MS = 60_000;

export interface TestDocker extends AsyncDisposable {
  /** For DOCKER_HOST. */
  readonly host: string;
  /** docker import of a folder, as an image of that name. */
  importFolder(folder: string, image: string): Promise<void>;
}

/** Why Docker cannot be had here, or undefined. Installs docker.io where it is missing and may be installed. */
export async function dockerProblem(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'Docker needs root here';
  if (existsSync('/usr/sbin/dockerd') || existsSync('/usr/bin/dockerd')) return undefined;
  if (!existsSync('/usr/bin/apt-get')) return 'there is no dockerd and no apt-get to install it';
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['-qq', 'update'], { env });
    await run('apt-get', ['-qq', 'install', '-y', '--no-install-recommends', 'docker.io'], {
      env,
      maxBuffer: 1 << 26,
    });
    return undefined;
  } catch (error) {
    return `docker.io could not be installed: ${(error as Error).message}`;
  }
}

export async function startDocker(): Promise<TestDocker> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-docker-'));
  const host = `unix://${join(folder, 'docker.sock')}`;
  const places = [
    '--data-root',
    join(folder, 'data'),
    '--exec-root',
    join(folder, 'exec'),
    '--pidfile',
    join(folder, 'pid'),
  ];
  const child = spawn('dockerd', [...places, '--host', host, '--iptables=false', '--bridge=none'], {
    stdio: 'ignore',
    env: { ...process.env, PATH: `${process.env['PATH']}:/usr/sbin:/sbin` },
  });
  const stop = (): Promise<void> => stopDocker(child, folder);
  const until = performance.now() + START_MS;
  while (!(await answers(host))) {
    if (child.exitCode !== null || performance.now() > until) {
      await stop();
      throw new Error('dockerd did not start');
    }
    await sleep(100);
  }
  return {
    host,
    importFolder: async (source, image) => {
      const tar = join(folder, 'image.tar');
      await run('tar', ['-C', source, '-cf', tar, '.']);
      await run('docker', ['-H', host, 'import', tar, image]);
    },
    [Symbol.asyncDispose]: stop,
  };
}

const answers = (host: string): Promise<boolean> =>
  run('docker', ['-H', host, 'version']).then(
    () => true,
    () => false,
  );

async function stopDocker(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null) {
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }
  // dockerd leaves the host network namespace mounted.
  const mounts = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  for (const mount of mounts.filter((path) => path.startsWith(folder))) await run('umount', ['-l', mount]);
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
