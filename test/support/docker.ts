// A Docker engine for a test: our own dockerd in a temporary folder and a mount namespace of its own, without bridge or
// firewall rules.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sleep } from '../../services/common/clock.ts';
import { hostPrograms } from './docker-image.ts';

const run = promisify(execFile);
const START_MS = 60_000;
const PATH = `${process.env['PATH']}:/usr/sbin:/sbin`;
const OUTPUT_BYTES = 1 << 26;

/** An image with a shell, the basic programs, python3, git and curl. */
export const PROGRAMS_IMAGE = 'polar-test-programs:latest';

export interface TestDocker extends AsyncDisposable {
  /** For DOCKER_HOST. */
  readonly host: string;
  readonly socket: string;
  /** All of the engine is below it; another one after each start. */
  readonly pid: number;
  /** Output of `docker ARGS`. */
  docker(...args: string[]): Promise<string>;
  /** docker import of a folder, as an image of that name. */
  importFolder(folder: string, image: string): Promise<void>;
  /** Make PROGRAMS_IMAGE out of the host's programs. */
  importPrograms(): Promise<void>;
  /** An image with more of a Dockerfile's lines. */
  change(image: string, name: string, lines: readonly string[]): Promise<void>;
  /** SIGKILL of dockerd, and a new one on the same data. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface TestDockerOptions {
  /** Users of containers are 200000 and above outside. */
  readonly remapped?: boolean;
}

/** Why Docker cannot be had here, or undefined. Installs docker.io where it is missing and may be installed. */
export async function dockerProblem(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'Docker needs root here';
  if (existsSync('/usr/sbin/dockerd') || existsSync('/usr/bin/dockerd')) return undefined;
  if (!existsSync('/usr/bin/apt-get')) return 'there is no dockerd and no apt-get to install it';
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const maxBuffer = OUTPUT_BYTES;
    await run('apt-get', ['-qq', 'update'], { env, maxBuffer });
    const install = ['-qq', 'install', '-y', '--no-install-recommends', 'docker.io'];
    await run('apt-get', install, { env, maxBuffer });
    return undefined;
  } catch (error) {
    return `docker.io could not be installed: ${(error as Error).message}`;
  }
}

/** Told where suites with Docker are left out. */
export const dockerIsThere = await dockerProblem().then((problem) => {
  if (problem !== undefined) process.stdout.write(`      without Docker: ${problem}\n`);
  return problem === undefined;
});

/** With PROGRAMS_IMAGE. */
export async function startDockerWithPrograms(options: TestDockerOptions = {}): Promise<TestDocker> {
  const docker = await startDocker(options);
  await docker.importPrograms();
  return docker;
}

export async function startDocker(options: TestDockerOptions = {}): Promise<TestDocker> {
  const engine = new TestEngine(mkdtempSync(join(tmpdir(), 'polar-test-docker-')), options);
  await engine.start();
  return engine;
}

/** containerd of its own: one that dockerd starts is waited for by the second. */
const ENGINE = `mkdir -p "$1/etc.upper" "$1/etc.work"
cp "$1"/sub?id "$1/etc.upper" 2> /dev/null && mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/etc.upper,workdir=$1/etc.work" /etc
containerd --address "$1/containerd.sock" --root "$1/containerd" --state "$1/containerd.state" --log-level error &
containerd=$!
while [ ! -S "$1/containerd.sock" ]; do sleep 0.02; done
folder=$1; shift
dockerd --containerd "$folder/containerd.sock" "$@" &
dockerd=$!
trap 'kill -TERM $dockerd' TERM
while kill -0 $dockerd 2> /dev/null; do wait $dockerd; done
kill $containerd; wait`;

class TestEngine implements TestDocker {
  readonly host: string;
  readonly socket: string;
  readonly #folder: string;
  readonly #flags: readonly string[];
  #child: ChildProcess | undefined;

  constructor(folder: string, { remapped = false }: TestDockerOptions) {
    const at = (name: string): string => join(folder, name);
    this.#folder = folder;
    this.socket = at('docker.sock');
    this.host = `unix://${this.socket}`;
    const places = ['--data-root', at('data'), '--exec-root', at('exec'), '--pidfile', at('pid')];
    const users = remapped ? ['--userns-remap', 'nobody:nogroup'] : [];
    this.#flags = [...places, '--host', this.host, '--iptables=false', '--bridge=none', ...users];
    // The users of containers pass through.
    chmodSync(folder, 0o711);
    if (!remapped) return;
    writeFileSync(at('subuid'), 'nobody:200000:65536\n');
    writeFileSync(at('subgid'), 'nobody:200000:65536\nnogroup:200000:65536\n');
  }

  async start(): Promise<void> {
    mkdirSync(join(this.#folder, 'containerd.state'), { recursive: true });
    const script = ['sh', '-c', ENGINE, 'sh', this.#folder, ...this.#flags];
    const child = spawn('unshare', ['--mount', '--propagation', 'slave', ...script], {
      stdio: process.env['POLAR_TEST_DOCKER_LOG'] === undefined ? 'ignore' : 'inherit',
      env: { ...process.env, PATH },
    });
    this.#child = child;
    const until = performance.now() + START_MS;
    while (!(await this.#answers())) {
      if (child.exitCode !== null || performance.now() > until) {
        await this[Symbol.asyncDispose]();
        throw new Error('dockerd did not start');
      }
      await sleep(50);
    }
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async kill(): Promise<void> {
    process.kill(Number(readFileSync(join(this.#folder, 'pid'), 'utf8')), 'SIGKILL');
    await this.#ended();
    rmSync(join(this.#folder, 'pid'), { force: true });
  }

  async docker(...args: string[]): Promise<string> {
    const { stdout } = await run('docker', ['-H', this.host, ...args], { maxBuffer: OUTPUT_BYTES });
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
    const stage = join(this.#folder, 'stage');
    await this.#import(await hostPrograms(stage), PROGRAMS_IMAGE);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child?.kill('SIGTERM');
    await this.#ended();
    // Those of containers that ended while no engine was there are nobody's: pkill says 1 where there are none.
    await run('pkill', ['-KILL', '-f', `containerd-shim.*${this.#folder}/`]).catch(() => {});
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #import(what: readonly string[], image: string): Promise<void> {
    const tar = join(this.#folder, 'image.tar');
    await run('tar', ['-cf', tar, ...what], { maxBuffer: OUTPUT_BYTES });
    await this.docker('import', tar, image);
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
