// A Podman service for a test: one of our own in a temporary folder and a mount namespace, which hides what it keeps elsewhere.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { killLeft, PATH, TestEngine } from './container-engine.ts';

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
export const startPodmanWithPrograms = (): Promise<TestEngine> => new TestPodman().open({ programs: true });

/**
 * State of the runtime and locks lie in /run and /dev/shm, caches in /var/lib, whatever folder is named. What holds them stays
 * when the service is killed: containers of a service that forgot its locks would share those of new ones, and wait for ever.
 */
const PLACE =
  'for folder in /run /dev/shm /var/lib; do mount -t tmpfs podman "$folder"; done; echo made; exec cat';
const SERVICE = `exec podman --root "$1/data" --runroot "$1/run" --tmpdir "$1/tmp" --log-level error system service --time 0 "$2"`;

class TestPodman extends TestEngine {
  #place: ChildProcess | undefined;
  #service: ChildProcess | undefined;

  constructor() {
    super('podman');
    writeFileSync(join(this.folder, 'containers.conf'), CONFIG);
  }

  protected command(): readonly string[] {
    return ['podman', '--remote', '--url', this.host];
  }

  protected async spawned(): Promise<ChildProcess> {
    this.#place ??= await madePlace();
    const place = ['--target', `${this.#place.pid}`, '--mount'];
    this.#service = spawn('nsenter', [...place, 'sh', '-ec', SERVICE, 'sh', this.folder, this.host], {
      stdio: process.env['POLAR_TEST_ENGINE_LOG'] === undefined ? 'ignore' : 'inherit',
      env: { ...process.env, PATH, CONTAINERS_CONF: join(this.folder, 'containers.conf') },
    });
    return this.#service;
  }

  protected strike(): void {
    this.#service?.kill('SIGKILL');
    rmSync(this.socket, { force: true });
  }

  /** What still watches a container of it, if anything does, holds the mount namespace. */
  protected async clear(): Promise<void> {
    await killLeft(`conmon.*${this.folder}/`);
    this.#place?.kill('SIGKILL');
    for (const name of readdirSync(GROUPS)) removeGroup(join(GROUPS, name, 'libpod_parent'));
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
