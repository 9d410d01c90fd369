// A container engine for a test: one of our own in a temporary folder, which a command of Docker's words talks to.
import { type ChildProcess, execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hostPrograms } from './docker-image.ts';
import { eventually } from './eventually.ts';

const run = promisify(execFile);
const OUTPUT_BYTES = 1 << 26;
const START_MS = 60_000;

/** Where engines and what they start are found: the user's, and root's. */
export const PATH = `${process.env['PATH']}:/usr/sbin:/sbin`;

/** An image with a shell, the basic programs, python3, git and curl. */
export const PROGRAMS_IMAGE = 'polar-test-programs:latest';

export abstract class TestEngine implements AsyncDisposable {
  /** For DOCKER_HOST. */
  readonly host: string;
  readonly socket: string;
  /** What it keeps. */
  readonly data: string;
  protected readonly folder: string;
  #child: ChildProcess | undefined;
  readonly #name: string;

  readonly #ownDisk: string | undefined;

  /** `diskMb`: of a disk of its own that it keeps everything on. */
  protected constructor(name: string, diskMb?: number) {
    this.#name = name;
    this.folder = mkdtempSync(join(tmpdir(), `polar-test-${name}-`));
    this.socket = join(this.folder, `${name}.sock`);
    this.host = `unix://${this.socket}`;
    // The users of containers pass through.
    chmodSync(this.folder, 0o711);
    this.data = join(this.folder, 'data');
    mkdirSync(this.data);
    this.#ownDisk = diskMb === undefined ? undefined : this.data;
    if (diskMb === undefined) return;
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMb}m,mode=711`, 'polar-test', this.data]);
  }

  /** Begins the engine's process. */
  protected abstract spawned(): Promise<ChildProcess>;
  /** Kills the engine's process, and nothing beside it. */
  protected abstract strike(): void;
  /** Clears up what the ended engine leaves. */
  protected abstract clear(): Promise<void>;
  /** The command that talks to it: its program, and the words before all others. */
  protected abstract command(): readonly string[];

  /** Runs it, with PROGRAMS_IMAGE where that is asked for. Where that fails, nothing is left. */
  async open({ programs = false } = {}): Promise<this> {
    await using opened = new AsyncDisposableStack();
    opened.use(this);
    await this.start();
    if (programs) await this.#import(await hostPrograms(join(this.folder, 'stage')), PROGRAMS_IMAGE);
    opened.move();
    return this;
  }

  async start(): Promise<void> {
    const child = await this.spawned();
    this.#child = child;
    const answers = async (): Promise<boolean> => {
      if (hasEnded(child)) throw new Error(`${this.#name} ended with ${child.exitCode ?? child.signalCode}`);
      return await this.docker('version').then(
        () => true,
        () => false,
      );
    };
    await eventually(`an answer of ${this.#name}`, answers, START_MS);
  }

  /** All of the engine is below it; another one after each start. */
  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** SIGKILL of the engine; `start` begins a new one on the same data. */
  async kill(): Promise<void> {
    this.strike();
    await this.#ended();
  }

  /** Output of `docker ARGS`. */
  async docker(...args: string[]): Promise<string> {
    const [program = '', ...first] = this.command();
    const env = { ...process.env, PATH };
    const { stdout } = await run(program, [...first, ...args], { maxBuffer: OUTPUT_BYTES, env });
    return stdout;
  }

  /** Ids of all containers, running or not, with that label. */
  async containers(label?: string): Promise<string[]> {
    const filter = label === undefined ? [] : ['--filter', `label=${label}`];
    const ids = (await this.docker('ps', '--all', '--quiet', '--no-trunc', ...filter))
      .split('\n')
      .filter(Boolean);
    const known = await Promise.all(ids.map((id) => this.docker('inspect', id).catch(() => undefined)));
    // Docker 20 may list one that it has deleted already, until it ends.
    return ids.filter((_, i) => known[i] !== undefined);
  }

  /** Processes that containerd keeps, one for each container that runs. */
  async shims(): Promise<string[]> {
    const found = await run('pgrep', ['-a', '-f', `containerd-shim.*${this.folder}/`]).catch(() => undefined);
    return found === undefined ? [] : found.stdout.trim().split('\n');
  }

  /** An image of that name, of a folder's files. */
  async importFolder(source: string, image: string): Promise<void> {
    await this.#import(['-C', source, '.'], image);
  }

  /** An image with more of a Dockerfile's lines. */
  async change(image: string, name: string, lines: readonly string[]): Promise<void> {
    const id = (await this.docker('create', '--network', 'none', image, 'true')).trim();
    await this.docker('commit', ...lines.flatMap((line) => ['--change', line]), id, name);
    await this.docker('rm', id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child?.kill('SIGTERM');
    await this.#ended();
    await this.clear();
    if (this.#ownDisk !== undefined) execFileSync('umount', ['-l', this.#ownDisk]);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #import(what: readonly string[], image: string): Promise<void> {
    const tar = join(this.folder, 'image.tar');
    await run('tar', ['-cf', tar, ...what], { maxBuffer: OUTPUT_BYTES });
    await this.docker('import', tar, image);
    rmSync(tar);
  }

  async #ended(): Promise<void> {
    const child = this.#child;
    if (child !== undefined && !hasEnded(child)) await once(child, 'exit');
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null;

/** Kills processes that outlived their engine, by their command line; pkill says 1 where there are none. */
export async function killLeft(pattern: string): Promise<void> {
  await run('pkill', ['-KILL', '-f', pattern]).catch(() => {});
}
