// Where engines and models lie, and steps that are done once.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '../../../tools/nats-server.mjs';

/** All that the set-up makes; remove it to start afresh. */
export const ENGINES = join(cacheDir, 'engines');

/**
 * Do `work` in an empty folder below ENGINES unless it was done there for the same `inputs`. The mark of that lies in
 * the folder and goes with it.
 */
export async function made(
  name: string,
  inputs: readonly string[],
  work: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(ENGINES, name);
  const mark = join(folder, '.polar-stamp');
  const digest = digestOf(inputs);
  if (existsSync(mark) && readFileSync(mark, 'utf8') === digest) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await work(folder);
  writeFileSync(mark, digest);
  return folder;
}

/** Whether `made` has nothing to do. */
export function isMade(name: string, inputs: readonly string[]): boolean {
  const mark = join(ENGINES, name, '.polar-stamp');
  return existsSync(mark) && readFileSync(mark, 'utf8') === digestOf(inputs);
}

const digestOf = (inputs: readonly string[]): string =>
  createHash('sha256').update(inputs.join('\0')).digest('hex');
