// A sandbox with image `host`: a small root of its own, the host's programs laid over it read-only.
import { lstatSync, readlinkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from '../../domain/command.ts';
import {
  COVERED_FOLDERS,
  HOST_ETC,
  PROGRAM_FOLDERS,
  SESSION_FOLDERS,
  SKELETON_FILES,
  SKELETON_FOLDERS,
} from '../../domain/skeleton.ts';
import { makeAllOwned, makeOwned, removeTree, writeOwned } from '../../host/box-folders.ts';
import { bytesOf } from '../../host/node-disk.ts';
import { placeOutputs } from '../../host/output.ts';
import { getFile, makeFolder, putFiles, type RootedOptions } from '../../host/rooted-files.ts';
import type { Box, BoxSpec } from '../backend.ts';
import { proxyUrl } from '../proxy-port.ts';
import type { Layer } from './layer-store.ts';
import type { Ground } from './overlay-box.ts';
import type { BoxParts } from './parts.ts';
import { placeOf } from './place.ts';
import { placed, placedWherePossible } from './targets.ts';

export async function createHostBox(parts: BoxParts, spec: BoxSpec): Promise<Box> {
  const { host } = parts;
  const folder = join(host.boxes, spec.id);
  makeOwned(folder, undefined);
  const place = await placeOf(host, spec);
  const root = join(place.path, 'root');
  makeOwned(root, host.uid);
  makeSkeleton(root, host.uid);
  await placeOutputs(host.fifos, folder);
  const files: RootedOptions = { root, uid: host.uid, covered: COVERED_FOLDERS };
  const seen = join(place.seen, 'root');
  const launchOptions = ({ mounts }: Command) => {
    const shown = mounts.map((one) => [host.mountSeen(one), one.target] as const);
    return {
      root: seen,
      readOnly: [...PROGRAMS.readOnly, ...placed(shown, [root])],
      readOnlyTry: placedWherePossible(ETC, [root]),
    };
  };
  const prefix = [...host.enterAsSandbox(), ...parts.launcher.argv];
  return {
    proxyUrl,
    filesNeedIdle: false,
    disk: { folder: host.boxes, writtenBytes: (signal) => bytesOf(place.path, signal) },
    exec: async (command, sink, signal) =>
      await parts.launch({ spec, folder, prefix, command, options: launchOptions(command) }, sink, signal),
    makeFolder: async (path) => makeFolder(files, path),
    putFiles: (list, signal) => putFiles(files, list, signal),
    getFile: async (path) => getFile(files, path),
    freeze: (key) => parts.layers.add(key, root),
    remove: () => removeTree(folder),
  };
}

/** A small root that was prepared, the host's programs over it. */
export const groundOfHost = (layer: Layer, lowers: readonly string[]): Ground => ({
  ...{ lowers, layer, readOnly: PROGRAMS.readOnly, readOnlyTry: ETC, covered: COVERED_FOLDERS },
});

/** Changes with the programs that are installed. */
export function hostIdentity(): string {
  const times = WATCHED.map((path) => lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return `host:${times.join(':')}`;
}

function makeSkeleton(root: string, uid: number | undefined): void {
  for (const [path, mode] of SKELETON_FOLDERS) makeOwned(join(root, path), uid, mode);
  makeAllOwned(root, SESSION_FOLDERS, uid);
  for (const [path, content] of SKELETON_FILES) writeOwned(join(root, path), content, uid);
  for (const [name, target] of PROGRAMS.links) symlinkSync(target, join(root, name));
}

/** How the host's programs appear in its root. */
const PROGRAMS = hostPrograms();
const ETC = HOST_ETC.map((path) => [path, path] as const);
const WATCHED = ['/usr/bin', '/usr/lib', '/usr/local/bin', '/etc/ld.so.cache'];

function hostPrograms(): {
  readonly links: readonly (readonly [name: string, target: string])[];
  readonly readOnly: readonly (readonly [source: string, target: string])[];
} {
  const links: [string, string][] = [];
  const readOnly: [string, string][] = [['/usr', '/usr']];
  for (const name of PROGRAM_FOLDERS) {
    const stat = lstatSync(`/${name}`, { throwIfNoEntry: false });
    if (stat?.isSymbolicLink()) links.push([name, readlinkSync(`/${name}`)]);
    else if (stat?.isDirectory()) readOnly.push([`/${name}`, `/${name}`]);
  }
  return { links, readOnly };
}
