// A sandbox on an image or a prepared layer, under an overlay that each command mounts for itself.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { PolarError } from '../../../common/errors.ts';
import { RPC_TIMEOUT_MS } from '../../../common/limits.ts';
import type { BwrapOptions } from '../../domain/bwrap-args.ts';
import type { Command, CommandResult, OutputSink } from '../../domain/command.ts';
import type { FileWrite } from '../../domain/paths.ts';
import { SESSION_FOLDERS } from '../../domain/skeleton.ts';
import { makeAllOwned, makeOwned, removeTree } from '../../host/box-folders.ts';
import { Limit } from '../../host/limit.ts';
import { placeOutputs } from '../../host/output.ts';
import { getFile, makeFolder, putFiles, type RootedOptions } from '../../host/rooted-files.ts';
import type { Box, BoxSpec } from '../backend.ts';
import { proxyUrl } from '../proxy-port.ts';
import type { Layer } from './layer-store.ts';
import type { BubblewrapParts } from './parts.ts';
import { type Place, placeOf } from './place.ts';

/** Relative paths: the mount table inside shows the options as they were given. */
const MOUNT = [
  'cd "$1"; mount -t overlay overlay -o "$2" "$3/root"; cd "$3/root"; u=$4; shift 4; unset PWD OLDPWD',
  'exec setpriv --reuid "$u" --regid "$u" --clear-groups -- "$@"',
].join('; ');

/** Says when it runs, so that the root is surely the sandbox's, and stays while files are moved. */
const HOLD = ['sh', '-c', `echo ready; exec sleep ${RPC_TIMEOUT_MS / 1000}`];

/** What lies under the overlay, and over it. */
export interface Ground {
  /** Below the stage, top first. */
  readonly lowers: readonly string[];
  /** Among the lowers; there is one for as long as the sandbox. */
  readonly layer?: Layer;
  /** Shown read-only beside a command's mounts, as of bwrap. */
  readonly readOnly: BwrapOptions['readOnly'];
  readonly readOnlyTry: BwrapOptions['readOnlyTry'];
  /** Top folders whose content is not the overlay's. */
  readonly covered: readonly string[];
}

export class OverlayBox implements Box {
  readonly proxyUrl = proxyUrl;
  readonly filesNeedIdle = true;
  readonly #parts: BubblewrapParts;
  readonly #spec: BoxSpec;
  readonly #ground: Ground;
  readonly #folder: string;
  readonly #upper: string;
  readonly #prefix: readonly string[];

  private constructor(parts: BubblewrapParts, spec: BoxSpec, ground: Ground, { path, below }: Place) {
    const { host } = parts;
    this.#parts = parts;
    this.#spec = spec;
    this.#ground = ground;
    this.#folder = join(host.boxes, spec.id);
    this.#upper = join(path, 'upper');
    for (const name of ['upper', 'work', 'root']) makeOwned(join(path, name), host.uid);
    if (ground.layer === undefined) makeAllOwned(this.#upper, SESSION_FOLDERS, host.uid);
    const options = `lowerdir=${ground.lowers.join(':')},upperdir=${below}/upper,workdir=${below}/work`;
    const own = ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', MOUNT, 'sh'];
    const mount = [host.stage ?? '', options, below, String(host.uid)];
    this.#prefix = [...host.enterStage(), ...own, ...mount, parts.bwrap];
  }

  static async create(parts: BubblewrapParts, spec: BoxSpec, ground: Ground): Promise<OverlayBox> {
    makeOwned(join(parts.host.boxes, spec.id), undefined);
    const box = new OverlayBox(parts, spec, ground, await placeOf(parts.host, spec));
    await placeOutputs(parts.host.fifos, box.#folder);
    return box;
  }

  async exec(command: Command, sink: OutputSink, signal: AbortSignal): Promise<CommandResult> {
    return await this.#launch(command, sink, signal, () => {});
  }

  async makeFolder(path: string): Promise<void> {
    await this.#withRoot(async (files) => makeFolder(files, path));
  }

  async putFiles(list: readonly FileWrite[]): Promise<void> {
    await this.#withRoot((files) => putFiles(files, list));
  }

  async getFile(path: string): Promise<Uint8Array> {
    return await this.#withRoot(async (files) => getFile(files, path));
  }

  async freeze(key: string): Promise<number> {
    return await this.#parts.layers.add(key, this.#upper);
  }

  async remove(): Promise<void> {
    await removeTree(this.#folder);
    this.#ground.layer?.release();
  }

  async #launch(
    command: Command,
    sink: OutputSink,
    signal: AbortSignal,
    onPid: (pid: number | undefined) => void,
  ): Promise<CommandResult> {
    const { host, launch } = this.#parts;
    const mounts = command.mounts.map((one) => [host.mountSeen(one), one.target] as const);
    const { readOnly, readOnlyTry } = this.#ground;
    const options = { root: '.', readOnly: [...readOnly, ...mounts], readOnlyTry };
    return await launch(
      { spec: this.#spec, folder: this.#folder, prefix: this.#prefix, command, options, onPid },
      sink,
      signal,
    );
  }

  /** The overlay is there only while a command runs: one that waits holds it. */
  async #withRoot<T>(work: (files: RootedOptions) => Promise<T>): Promise<T> {
    const done = new AbortController();
    const { promise: ready, resolve } = Promise.withResolvers<void>();
    let pid = 0;
    const command: Command = {
      ...{ argv: HOLD, cwd: '/', env: {}, stdin: new Uint8Array(), mounts: [], proxyAs: undefined },
      limit: new Limit(RPC_TIMEOUT_MS),
    };
    const holding = this.#launch(
      command,
      () => resolve(),
      done.signal,
      (now) => {
        pid = now ?? pid;
      },
    );
    try {
      await Promise.race([ready, holding.then(refuseEarlyEnd)]);
      return await work({ root: rootOf(pid), uid: this.#parts.host.uid, covered: this.#ground.covered });
    } finally {
      done.abort();
      await holding.catch(() => {});
    }
  }
}

function refuseEarlyEnd({ exitCode }: CommandResult): never {
  throw new PolarError(
    'SANDBOX_FAILED',
    `the image cannot run sh, echo and sleep, which moving files needs (exit ${exitCode})`,
  );
}

/** The sandbox's root from outside; never the host's own. */
function rootOf(pid: number): string {
  const root = `/proc/${pid}/root/`;
  const [inside, host] = [statSync(root), statSync('/')];
  if (inside.dev === host.dev && inside.ino === host.ino) {
    throw new PolarError('SANDBOX_FAILED', 'the sandbox has no root of its own');
  }
  return root;
}
