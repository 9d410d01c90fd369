// A Podman service for a test: one of our own in a temporary folder and a mount namespace, which hides what it keeps elsewhere.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '../../services/common/clock.ts';
import { PROGRAMS_IMAGE, type TestDocker } from './docker.ts';
import { hostPrograms } from './docker-image.ts';

const run = promisify(execFile);
const START_MS = 30_000;
const OUTPUT_BYTES = 1 << 26;
const PATH = `${process.env['PATH']}:/usr/sbin:/sbin`;
/** Of containers: the program is podman's own init. */
const PROGRAMS = ['/usr/bin/podman', '/usr/bin/conmon', '/usr/libexec/podman/catatonit'];
const CONFIG = '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\nruntime = "runc"\n';
const GROUPS = '/sys/fs/cgroup';

/** Told where suites with Podman are left out. */
export const podmanIsThere = ((): boolean => {
  const missing = PROGRAMS.filter((path) => !existsSync(path));
  const problem =
    process.getuid?.() === 0 ? missing.map((path) => `there is no ${path}`).join(', ') : 'no root';
  if (problem !== '') process.stdout.write(`      without Podman: ${problem}\n`);
  return problem === '';
})();

/** With PROGRAMS_IMAGE. Its command is podman, whose words are docker's. */
export async function startPodmanWithPrograms(): Promise<TestDocker> {
  await using opened = new AsyncDisposableStack();
  const engine = opened.use(new TestPodman(mkdtempSync(join(tmpdir(), 'polar-test-podman-'))));
  await engine.start();
  await engine.importPrograms();
  opened.move();
  return engine;
}

/**
 * State of the runtime and locks lie in /run and /dev/shm, caches in /var/lib, whatever folder is named. What holds them stays
 * when the service is killed: containers of a service that forgot its locks would share those of new ones, and wait for ever.
 */
const PLACE =
  'for folder in /run /dev/shm /var/lib; do mount -t tmpfs podman "$folder"; done; echo made; exec cat';
const SERVICE = `exec podman --root "$1/data" --runroot "$1/run" --tmpdir "$1/tmp" --log-level error system service --time 0 "$2"`;

class TestPodman implements TestDocker {
  readonly host: string;
  readonly socket: string;
  readonly #folder: string;
  #place: ChildProcess | undefined;
  #child: ChildProcess | undefined;

  constructor(folder: string) {
    this.#folder = folder;
    this.socket = join(folder, 'podman.sock');
    this.host = `unix://${this.socket}`;
    writeFileSync(join(folder, 'containers.conf'), CONFIG);
    // The users of containers pass through.
    chmodSync(folder, 0o711);
  }

  async start(): Promise<void> {
    this.#place ??= await madePlace();
    const place = ['--target', `${this.#place.pid}`, '--mount'];
    const child = spawn('nsenter', [...place, 'sh', '-ec', SERVICE, 'sh', this.#folder, this.host], {
      stdio: process.env['POLAR_TEST_PODMAN_LOG'] === undefined ? 'ignore' : 'inherit',
      env: { ...process.env, PATH, CONTAINERS_CONF: join(this.#folder, 'containers.conf') },
    });
    this.#child = child;
    const until = performance.now() + START_MS;
    while (!(await this.#answers())) {
      if (child.exitCode !== null || performance.now() > until) {
        await this[Symbol.asyncDispose]();
        throw new Error('podman did not start');
      }
      await sleep(50);
    }
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.#ended();
    rmSync(this.socket, { force: true });
  }

  async docker(...args: string[]): Promise<string> {
    const { stdout } = await run('podman', ['--remote', '--url', this.host, ...args], {
      maxBuffer: OUTPUT_BYTES,
      env: { ...process.env, PATH },
    });
    return stdout;
  }

  async importFolder(source: string, image: string): Promise<void> {
    await this.#import(['-C', source, '.'], image);
  }

  async change(image: string, name: string, lines: readonly string[]): Promise<void> {
    const id = (await this.docker('create', '--network', 'none', image, 'true')).trim();
    await this.docker('commit', ...lines.flatMap((line) => ['--change', line]), id, name);
    await this.docker('rm', id);
  }

  async importPrograms(): Promise<void> {
    await this.#import(await hostPrograms(join(this.#folder, 'stage')), PROGRAMS_IMAGE);
  }

  /** What still watches a container of it, if anything does, holds the mount namespace. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#child?.kill('SIGTERM');
    await this.#ended();
    await run('pkill', ['-KILL', '-f', `conmon.*${this.#folder}/`]).catch(() => {});
    this.#place?.kill('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
    for (const name of readdirSync(GROUPS)) removeGroup(join(GROUPS, name, 'libpod_parent'));
  }

  async #import(what: readonly string[], image: string): Promise<void> {
    const tar = join(this.#folder, 'image.tar');
    await run('tar', ['-cf', tar, ...what], { maxBuffer: OUTPUT_BYTES });
    await this.docker('import', '--quiet', tar, image);
    rmSync(tar);
  }

  async #ended(): Promise<void> {
    const child = this.#child;
    if (child !== undefined && child.exitCode === null && child.signalCode === null)
      await once(child, 'exit');
  }

  #answers(): Promise<boolean> {
    return this.docker('version').then(
      () => true,
      () => false,
    );
  }
}

/** Holds the mounts of all its services, and ends with this process. */
async function madePlace(): Promise<ChildProcess> {
  const place = spawn('unshare', ['--mount', '--propagation', 'slave', 'sh', '-ec', PLACE], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const made = new AbortController();
  const ended = once(place, 'exit', made).then(([code, signal]) => {
    throw new Error(`no place for podman: unshare or mount ended with ${code ?? signal}`);
  });
  try {
    await Promise.race([once(place.stdout, 'data', made), ended]);
  } finally {
    made.abort();
  }
  return place;
}

/** With those of containers that a killed service did not clear up after. Left where another service of this machine uses it. */
function removeGroup(parent: string): void {
  if (!existsSync(parent)) return;
  const inside = readdirSync(parent, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const folder of [...inside.map(({ name }) => join(parent, name)), parent]) {
    try {
      rmdirSync(folder);
    } catch {
      // It is used.
    }
  }
}
