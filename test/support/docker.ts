// A Docker engine for a test: our own dockerd in a temporary folder and a mount namespace of its own, without bridge or
// firewall rules.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { killLeft, PATH, TestEngine } from './container-engine.ts';

const run = promisify(execFile);
const INSTALL_OUTPUT_BYTES = 1 << 26;

export interface TestDockerOptions {
  /** Users of containers are 200000 and above outside. */
  readonly remapped?: boolean;
  /** Of a disk of its own. */
  readonly diskMb?: number;
}

/** Why Docker cannot be had here, or undefined. Installs docker.io where it is missing and may be installed. */
export async function dockerProblem(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'Docker needs root here';
  if (existsSync('/usr/sbin/dockerd') || existsSync('/usr/bin/dockerd')) return undefined;
  if (!existsSync('/usr/bin/apt-get')) return 'there is no dockerd and no apt-get to install it';
  try {
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const maxBuffer = INSTALL_OUTPUT_BYTES;
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
export const startDockerWithPrograms = (options: TestDockerOptions = {}): Promise<TestEngine> =>
  new TestDocker(options).open({ programs: true });

export const startDocker = (options: TestDockerOptions = {}): Promise<TestEngine> =>
  new TestDocker(options).open();

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

class TestDocker extends TestEngine {
  readonly #flags: readonly string[];

  constructor({ remapped = false, diskMb }: TestDockerOptions) {
    super('docker', diskMb);
    const at = (name: string): string => join(this.folder, name);
    const places = ['--data-root', at('data'), '--exec-root', at('exec'), '--pidfile', at('pid')];
    const users = remapped ? ['--userns-remap', 'nobody:nogroup'] : [];
    this.#flags = [...places, '--host', this.host, '--iptables=false', '--bridge=none', ...users];
    if (!remapped) return;
    writeFileSync(at('subuid'), 'nobody:200000:65536\n');
    writeFileSync(at('subgid'), 'nobody:200000:65536\nnogroup:200000:65536\n');
  }

  protected command(): readonly string[] {
    return ['docker', '-H', this.host];
  }

  protected async spawned(): Promise<ChildProcess> {
    mkdirSync(join(this.folder, 'containerd.state'), { recursive: true });
    const script = ['sh', '-c', ENGINE, 'sh', this.folder, ...this.#flags];
    return spawn('unshare', ['--mount', '--propagation', 'slave', ...script], {
      stdio: process.env['POLAR_TEST_ENGINE_LOG'] === undefined ? 'ignore' : 'inherit',
      env: { ...process.env, PATH },
    });
  }

  protected strike(): void {
    const file = join(this.folder, 'pid');
    process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL');
    // The next one takes a file with a number that is in use for an engine that runs.
    rmSync(file);
  }

  /** Those of containers that ended while no engine was there are nobody's. */
  protected async clear(): Promise<void> {
    await killLeft(`containerd-shim.*${this.folder}/`);
  }
}
