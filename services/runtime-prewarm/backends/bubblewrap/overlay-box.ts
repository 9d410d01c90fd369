// A sandbox on an image or a prepared layer, under an overlay that each command mounts for itself.
import { join } from 'node:path';
import { PolarError } from '../../../common/errors.ts';
import { RPC_TIMEOUT_MS } from '../../../common/limits.ts';
import type { Command, CommandResult, OutputSink } from '../../domain/command.ts';
import type { LaunchOptions } from '../../domain/launch-options.ts';
import type { FileWrite } from '../../domain/paths.ts';
import { SESSION_FOLDERS } from '../../domain/skeleton.ts';
import { makeAllOwned, makeOwned, removeBox } from '../../host/box-folders.ts';
import { Limit } from '../../host/limit.ts';
import type { BoxDisk } from '../../host/node-disk.ts';
import { placeOutputs } from '../../host/output.ts';
import { getFile, makeFolder, putFiles, type RootedOptions } from '../../host/rooted-files.ts';
import { type Ended, run } from '../../host/run.ts';
import type { Box, BoxSpec } from '../backend.ts';
import { proxyUrl } from '../proxy-port.ts';
import type { Layer } from './layer-store.ts';
import type { BoxParts } from './parts.ts';
import { type Place, placeOf, useOfPlace } from './place.ts';
import { placed, placedWherePossible } from './targets.ts';

/** Relative paths: the mount table inside shows the options as they were given. */
const MOUNT = 'cd "$1"; mount -t overlay overlay -o "$2" "$3/root"';
/** Of the next n arguments, which bwrap shows something at: what came along with a renamed folder is seen only here. */
const REFUSE_LINKS = [
  'set -f; n=$1; shift; while [ "$n" -gt 0 ]; do way=.; IFS=/; for part in $1; do way=$way/$part',
  'if [ -h "$way" ]; then echo "a link leads away from $1" >&2; exit 1; fi; done; unset IFS; n=$((n - 1)); shift; done',
].join('; ');
const ENTER = [
  `${MOUNT}; cd "$3/root"; u=$4; shift 4; ${REFUSE_LINKS}; unset PWD OLDPWD`,
  'exec setpriv --reuid "$u" --regid "$u" --clear-groups -- "$@"',
].join('; ');

/** Tells its pid, in whose mount namespace the root is, and stays while files are moved. Nothing of the sandbox runs. */
const HOLD = `${MOUNT}; echo $$; exec sleep ${RPC_TIMEOUT_MS / 1000}`;

/** What lies under the overlay, and over it. */
export interface Ground {
  /** Below the stage, top first. */
  readonly lowers: readonly string[];
  /** Among the lowers; there is one for as long as the sandbox. */
  readonly layer?: Layer;
  /** Among the lowers: let it go. */
  readonly image?: () => void;
  /** Shown read-only beside a command's mounts, as of bwrap. */
  readonly readOnly: LaunchOptions['readOnly'];
  readonly readOnlyTry: LaunchOptions['readOnlyTry'];
  /** Top folders whose content is not the overlay's. */
  readonly covered: readonly string[];
}

export class OverlayBox implements Box {
  readonly proxyUrl = proxyUrl;
  readonly filesNeedIdle = true;
  readonly disk: BoxDisk;
  readonly #parts: BoxParts;
  readonly #spec: BoxSpec;
  readonly #ground: Ground;
  readonly #folder: string;
  readonly #upper: string;
  /** Its place, from the stage on. */
  readonly #below: string;
  readonly #options: string;
  /** What makes up the root, top first, as this process sees it. */
  readonly #roots: readonly string[];

  private constructor(parts: BoxParts, spec: BoxSpec, ground: Ground, place: Place) {
    const { path, below } = place;
    const { host } = parts;
    this.#parts = parts;
    this.#spec = spec;
    this.#ground = ground;
    this.#folder = join(host.boxes, spec.id);
    this.#upper = join(path, 'upper');
    this.disk = { folder: host.boxes, written: (signal) => useOfPlace(place, signal) };
    for (const name of ['upper', 'work', 'root']) makeOwned(join(path, name), host.uid);
    if (ground.layer === undefined) makeAllOwned(this.#upper, SESSION_FOLDERS, host.uid);
    this.#below = below;
    const folders = `lowerdir=${ground.lowers.join(':')},upperdir=${below}/upper,workdir=${below}/work`;
    // Else a folder that was prepared could not be renamed: `git mv` and package managers end with EXDEV.
    this.#options = `${folders},redirect_dir=on`;
    const stage = join(`/proc/${host.guardian.pid}/root`, host.stage ?? '');
    this.#roots = [this.#upper, ...ground.lowers.map((lower) => join(stage, lower))];
  }

  static async create(parts: BoxParts, spec: BoxSpec, ground: Ground): Promise<OverlayBox> {
    makeOwned(join(parts.host.boxes, spec.id), undefined);
    const box = new OverlayBox(parts, spec, ground, await placeOf(parts.host, spec));
    await placeOutputs(parts.host.fifos, box.#folder);
    return box;
  }

  async exec(command: Command, sink: OutputSink, signal: AbortSignal): Promise<CommandResult> {
    const { host, launcher, launch } = this.#parts;
    const shown = command.mounts.map((one) => [host.mountSeen(one), one.target] as const);
    const readOnly = [...this.#ground.readOnly, ...placed(shown, this.#roots)];
    const readOnlyTry = placedWherePossible(this.#ground.readOnlyTry, this.#roots);
    const options = { root: '.', readOnly, readOnlyTry };
    const targets = [...readOnly, ...readOnlyTry].map(([, target]) => target);
    const prefix = [...this.#mounted(ENTER), String(targets.length), ...targets, ...launcher.argv];
    return await launch({ spec: this.#spec, folder: this.#folder, prefix, command, options }, sink, signal);
  }

  async makeFolder(path: string): Promise<void> {
    await this.#withRoot(async (files) => makeFolder(files, path));
  }

  async putFiles(list: readonly FileWrite[], signal: AbortSignal): Promise<void> {
    await this.#withRoot((files) => putFiles(files, list, signal));
  }

  async getFile(path: string): Promise<Uint8Array> {
    return await this.#withRoot(async (files) => getFile(files, path));
  }

  async freeze(key: string): Promise<number> {
    return await this.#parts.layers.add(key, this.#upper);
  }

  async remove(): Promise<void> {
    try {
      await removeBox(this.#folder);
    } finally {
      this.#ground.layer?.release();
      this.#ground.image?.();
    }
  }

  /** A script of the host's, in a mount namespace of its own, which mounts the overlay. */
  #mounted(script: string): string[] {
    const { host } = this.#parts;
    const own = ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', script, 'sh'];
    return [...host.enterStage(), ...own, host.stage ?? '', this.#options, this.#below, String(host.uid)];
  }

  /** The overlay is there only while a command runs: one of the host's that waits holds it. */
  async #withRoot<T>(work: (files: RootedOptions) => Promise<T>): Promise<T> {
    const { host } = this.#parts;
    const done = new AbortController();
    const { promise: told, resolve } = Promise.withResolvers<string>();
    const holding = run(
      this.#parts.openCell(this.#spec),
      {
        ...{ argv: this.#mounted(HOLD), folder: this.#folder, stdin: new Uint8Array(), fds: [] },
        ...{ limit: new Limit(RPC_TIMEOUT_MS), started: async () => true },
      },
      (stream, bytes) => stream === 'stdout' && resolve(Buffer.from(bytes).toString().trim()),
      done.signal,
    );
    try {
      const pid = await Promise.race([told, holding.then(refuseEarlyEnd)]);
      const root = join(`/proc/${pid}/root`, host.stage ?? '', this.#below, 'root');
      return await work({ root, uid: host.uid, covered: this.#ground.covered });
    } finally {
      done.abort();
      await holding.catch(() => {});
    }
  }
}

function refuseEarlyEnd({ code, complaint }: Ended): never {
  throw new PolarError(
    'SANDBOX_FAILED',
    `the sandbox's root cannot be mounted (${code}): ${complaint.trim()}`,
  );
}
