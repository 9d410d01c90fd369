// A root file system of a newer Debian, for harnesses that need a newer Python than this machine has. `npm run
// test:harnesses` makes it, once for each cache.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Adapter } from '../../services/harness-executor/adapters/adapter.ts';
import { nodePython } from '../../services/harness-executor/installs/node-python.ts';
import { CACHE } from '../conformance/installs.ts';

const RELEASE = 'trixie';
const PROGRAMS = ['python3', 'git', 'curl', 'procps'];
const OUTPUT_BYTES_MAX = 1 << 26;
const LOOK_MS = 10_000;

/** Folder of images; the name of the one in there. */
export const IMAGES = join(CACHE, 'images');
export const NEWER_IMAGE = `debian-${RELEASE}`;

const image = join(IMAGES, NEWER_IMAGE);
/** As it was made: an image's files become those of the users of sandboxes. */
const original = join(CACHE, 'debian', RELEASE);
export const newerIsThere = (): boolean => existsSync(image);

/** The image, and what it was made of, which is returned. Reaches Debian's mirror where that is not there yet. */
export async function makeNewerDebian(): Promise<string> {
  const args = ['--variant=minbase', `--include=${PROGRAMS.join()}`, RELEASE];
  await madeAt(original, (folder) => ['debootstrap', ...args, folder]);
  await madeAt(image, (folder) => ['cp', '-a', original, folder]);
  return original;
}

/** All of it, or nothing. */
async function madeAt(folder: string, commandFor: (folder: string) => string[]): Promise<void> {
  if (existsSync(folder)) return;
  mkdirSync(dirname(folder), { recursive: true });
  const temp = mkdtempSync(join(dirname(folder), '.making-'));
  try {
    const made = join(temp, 'root');
    const [program = '', ...args] = commandFor(made);
    await promisify(execFile)(program, args, { maxBuffer: OUTPUT_BYTES_MAX });
    renameSync(made, folder);
  } finally {
    rmSync(temp, { recursive: true });
  }
}

/** This machine's own Python will not do. */
export const needsNewer = async (adapter: Adapter): Promise<boolean> =>
  await nodePython(adapter, AbortSignal.timeout(LOOK_MS)).then(
    () => false,
    () => true,
  );
