// A sandbox whose root is a folder of its own, which a manager of any user can make.
import { join } from 'node:path';
import type { Command } from '../../domain/command.ts';
import type { DiskUse } from '../../domain/disk-room.ts';
import type { LaunchOptions } from '../../domain/launch-options.ts';
import { makeOwned, removeBox } from '../../host/box-folders.ts';
import { useOf } from '../../host/node-disk.ts';
import { placeOutputs } from '../../host/output.ts';
import { getFile, makeFolder, putFiles, type RootedOptions } from '../../host/rooted-files.ts';
import type { Box, BoxSpec } from '../backend.ts';
import { proxyUrl } from '../proxy-port.ts';
import type { BoxParts } from './parts.ts';
import { type Place, placeOf, useOfPlace } from './place.ts';
import { placed, placedWherePossible } from './targets.ts';

/** What a root begins with, and what is laid over it. */
export interface OwnRoot {
  /** The folder is there, and empty. */
  fill(files: RootedOptions): void | Promise<void>;
  /** Shown read-only beside a command's mounts, as of bwrap. */
  readonly readOnly: LaunchOptions['readOnly'];
  readonly readOnlyTry: LaunchOptions['readOnlyTry'];
  /** Top folders whose content is not the root's. */
  readonly covered: readonly string[];
  /** The folder that it begins as a copy of: that is none of the sandbox's writing. */
  readonly copied?: string;
}

export async function createFolderBox(parts: BoxParts, spec: BoxSpec, own: OwnRoot): Promise<Box> {
  const { host } = parts;
  const folder = join(host.boxes, spec.id);
  makeOwned(folder, undefined);
  const place = await placeOf(host, spec);
  const root = join(place.path, 'root');
  makeOwned(root, host.uid);
  const files: RootedOptions = { root, uid: host.uid, covered: own.covered };
  await placeOutputs(host.fifos, folder);
  await own.fill(files);
  const seen = join(place.seen, 'root');
  const launchOptions = ({ mounts }: Command) => {
    const shown = mounts.map((one) => [host.mountSeen(one), one.target] as const);
    return {
      root: seen,
      readOnly: [...own.readOnly, ...placed(shown, [root])],
      readOnlyTry: placedWherePossible(own.readOnlyTry, [root]),
    };
  };
  const prefix = [...host.enterAsSandbox(), ...parts.launcher.argv];
  return {
    proxyUrl,
    filesNeedIdle: false,
    disk: { folder: host.boxes, written: (signal) => written(place, own, signal) },
    exec: async (command, sink, signal) =>
      await parts.launch({ spec, folder, prefix, command, options: launchOptions(command) }, sink, signal),
    makeFolder: async (path) => makeFolder(files, path),
    putFiles: (list, signal) => putFiles(files, list, signal),
    getFile: async (path) => getFile(files, path),
    freeze: (key) => parts.layers.add(key, root),
    remove: () => removeBox(folder),
  };
}

const NOTHING: DiskUse = { bytes: 0, inodes: 0 };

async function written(place: Place, { copied }: OwnRoot, signal: AbortSignal): Promise<DiskUse> {
  const before = copied === undefined ? NOTHING : await useOf(copied, signal);
  const all = await useOfPlace(place, signal);
  return { bytes: all.bytes - before.bytes, inodes: all.inodes - before.inodes };
}
