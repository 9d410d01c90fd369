// A folder that stands for /polar/session, and commands of the host whose paths are rewritten to it.
import type { ChildProcess } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { PolarError } from '../../../common/errors.ts';
import {
  type Command,
  type CommandResult,
  memoryEnd,
  NETWORK_UNUSED,
  type OutputSink,
} from '../../domain/command.ts';
import type { FileWrite } from '../../domain/paths.ts';
import { partsOf, unsafe } from '../../domain/paths.ts';
import { type Rewrite, rewriter } from '../../domain/rewrite.ts';
import { SESSION_FOLDERS } from '../../domain/skeleton.ts';
import { makeAllOwned, makeOwned, removeBox, writeOwned } from '../../host/box-folders.ts';
import type { Host } from '../../host/host.ts';
import { type BoxDisk, useOf } from '../../host/node-disk.ts';
import { placeOutputs } from '../../host/output.ts';
import { getFile, makeFolder, putFiles, type RootedOptions } from '../../host/rooted-files.ts';
import { run } from '../../host/run.ts';
import type { Box, BoxSpec } from '../backend.ts';

const SESSION = '/polar/session';
const STATUS_FD = 3;
/** Takes the environment from a file: on the command line it would be seen by everybody, and set earlier it would act on launchers. */
const START = '. "$1"; echo started >&3; exec 3>&-; cd "$2" || exit 126; shift 2; unset OLDPWD; exec "$@"';

export class ProcessBox implements Box {
  readonly proxyUrl: string;
  readonly filesNeedIdle = false;
  readonly disk: BoxDisk;
  readonly #host: Host;
  readonly #spec: BoxSpec;
  readonly #folder: string;
  /** The folder as commands see it. */
  readonly #seen: string;
  readonly #files: RootedOptions;
  #launches = 0;

  private constructor(host: Host, spec: BoxSpec, proxyUrl: string) {
    this.proxyUrl = proxyUrl;
    this.#host = host;
    this.#spec = spec;
    this.#folder = join(host.boxes, spec.id);
    this.#seen = host.boxSeen(spec.id);
    this.disk = { folder: host.boxes, written: (signal) => useOf(this.#folder, signal) };
    const root = join(this.#folder, 'root');
    makeOwned(this.#folder, undefined);
    makeAllOwned(this.#folder, ['root', 'home', 'tmp'], host.uid);
    makeAllOwned(root, SESSION_FOLDERS, host.uid);
    this.#files = { root, uid: host.uid, covered: [] };
  }

  static async create(host: Host, spec: BoxSpec, proxyUrl: string): Promise<ProcessBox> {
    try {
      const box = new ProcessBox(host, spec, proxyUrl);
      await placeOutputs(host.fifos, box.#folder);
      return box;
    } catch (error) {
      await removeBox(join(host.boxes, spec.id)).catch(() => {});
      throw error;
    }
  }

  async exec(command: Command, sink: OutputSink, signal: AbortSignal): Promise<CommandResult> {
    await this.#host.showMounts(command.mounts);
    const launch = ++this.#launches;
    const rewrite = this.#rewrite(command);
    const environment = this.#writeEnvironment(launch, command, rewrite);
    const { stdin, limit } = command;
    const start = ['sh', '-c', START, 'sh', environment.seen, rewrite(command.cwd)];
    const argv = [...this.#host.enterAsSandbox(), ...start, ...command.argv.map(rewrite)];
    const cell = this.#host.containment.open(`${this.#spec.id}.${launch}`, this.#spec.limits);
    try {
      const ended = await run(
        cell,
        { argv, folder: this.#folder, stdin, limit, fds: ['pipe'], started },
        sink,
        signal,
      );
      const { code, timedOut, empty, usage, wallMs, droppedOutputBytes, droppedStderrBytes, complaint } =
        ended;
      if (!ended.started && !timedOut && usage.oomKills === 0) {
        throw new PolarError('SANDBOX_FAILED', `the command could not be started: ${complaint.trim()}`);
      }
      return {
        ...{
          exitCode: code,
          timedOut,
          ...memoryEnd(usage),
          empty,
          wallMs: Math.round(wallMs),
          droppedOutputBytes,
        },
        droppedStderrBytes,
        ...{ peakMemoryBytes: usage.peakMemoryBytes, cpuMs: usage.cpuMs, ...NETWORK_UNUSED },
      };
    } finally {
      rmSync(environment.path, { force: true });
    }
  }

  async makeFolder(path: string): Promise<void> {
    makeFolder(this.#files, owned(path));
  }

  async putFiles(files: readonly FileWrite[], signal: AbortSignal): Promise<void> {
    for (const { path } of files) owned(path);
    await putFiles(this.#files, files, signal);
  }

  async getFile(path: string): Promise<Uint8Array> {
    return getFile(this.#files, owned(path));
  }

  async remove(): Promise<void> {
    await removeBox(this.#folder);
  }

  #rewrite({ mounts }: Command): Rewrite {
    const targets = mounts.map((mount) => [mount.target, this.#host.mountSeen(mount)] as const);
    return rewriter(new Map([[SESSION, join(this.#seen, 'root', SESSION)], ...targets]));
  }

  #writeEnvironment(
    launch: number,
    { env, gpus }: Command,
    rewrite: Rewrite,
  ): { path: string; seen: string } {
    const all = {
      PATH: this.#host.commandPath,
      HOME: join(this.#seen, 'home'),
      TMPDIR: join(this.#seen, 'tmp'),
      LANG: 'C.UTF-8',
      ...env,
      // Above all others: nothing else tells a program which are its own.
      ...(gpus && { CUDA_VISIBLE_DEVICES: gpus.gpus.map(({ id }) => id).join(',') }),
    };
    const lines = Object.entries(all).map(([name, value]) => `export ${name}=${quoted(rewrite(value))}\n`);
    const name = `env.${launch}`;
    const path = join(this.#folder, name);
    writeOwned(path, lines.join(''), this.#host.uid, 0o600);
    return { path, seen: join(this.#seen, name) };
  }
}

/** One word of the launcher's shell says that nothing can fail any more but the command. */
function started(child: ChildProcess): Promise<boolean> {
  const status = child.stdio[STATUS_FD] as Readable;
  return new Promise((resolve) => {
    status.once('data', () => resolve(true));
    status.once('close', () => resolve(false));
  });
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function owned(path: string): string {
  const parts = partsOf(path);
  if (parts[0] === 'polar' && parts[1] === 'session') return path;
  throw unsafe(path, `is not below ${SESSION}, which is all that a sandbox of the process backend has`);
}
