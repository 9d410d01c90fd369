// A sandbox with image `host`: a small root of its own, the host's programs laid over it read-only.
import { lstatSync, readlinkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import {
  COVERED_FOLDERS,
  HOST_ETC,
  PROGRAM_FOLDERS,
  SESSION_FOLDERS,
  SKELETON_FILES,
  SKELETON_FOLDERS,
} from '../../domain/skeleton.ts';
import { makeAllOwned, makeOwned, writeOwned } from '../../host/box-folders.ts';
import type { RootedOptions } from '../../host/rooted-files.ts';
import type { Box, BoxSpec } from '../backend.ts';
import { createFolderBox } from './folder-box.ts';
import type { Layer } from './layer-store.ts';
import type { Ground } from './overlay-box.ts';
import type { BoxParts } from './parts.ts';

export const createHostBox = (parts: BoxParts, spec: BoxSpec): Promise<Box> =>
  createFolderBox(parts, spec, {
    ...{ fill: makeSkeleton, readOnly: PROGRAMS.readOnly, readOnlyTry: ETC, covered: COVERED_FOLDERS },
  });

/** A small root that was prepared, the host's programs over it. */
export const groundOfHost = (layer: Layer, lowers: readonly string[]): Ground => ({
  ...{ lowers, layer, readOnly: PROGRAMS.readOnly, readOnlyTry: ETC, covered: COVERED_FOLDERS },
});

/** Changes with the programs that are installed. */
export function hostIdentity(): string {
  const times = WATCHED.map((path) => lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return `host:${times.join(':')}`;
}

function makeSkeleton({ root, uid }: RootedOptions): void {
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
