// Adapters that a task names by path: modules below the folder that the operator chose, loaded on the node.
import { realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { checkStrict } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { HARNESSES } from '../../common/specs/catalogue.ts';
import { readExit } from '../domain/exit.ts';
import type { Adapter } from './adapter.ts';

/** A folder's name in the cache and in the sandbox. */
const NAME = /^[a-z][a-z0-9_]{0,63}$/;
const VERSION = /^[\w.+-]{0,64}$/;

const callable = z.custom<(...args: never[]) => unknown>((value) => typeof value === 'function', {
  message: 'must be a function',
});
const install = z.strictObject({
  name: z.string().min(1),
  version: z.string().regex(VERSION).min(1),
  entry: z.string().min(1),
  requirements: z.string().optional(),
  script: z.string().optional(),
});
const shape = z.object({
  name: z
    .string()
    .regex(NAME, 'must be 1 to 64 of [a-z0-9_], the first one a letter')
    .refine((name) => !(HARNESSES as readonly string[]).includes(name), 'is the name of another harness'),
  version: z.string().regex(VERSION, 'must be up to 64 of [A-Za-z0-9_.+-]').default(''),
  dialect: z.string().default(''),
  install: install.optional(),
  transcripts: z.array(z.string().startsWith('/')).default([]),
  skillsDir: z.string().startsWith('/').optional(),
  files: callable.optional(),
  command: callable,
  readExit: callable.optional(),
});

/**
 * The `adapter` that a module exports; what it leaves out has the default. A file that has changed is loaded anew.
 * Throws HARNESS_PLUGIN_INVALID, which says what is wrong.
 */
export async function loadPlugin(pluginsDir: string | undefined, importPath: string): Promise<Adapter> {
  if (pluginsDir === undefined) throw invalid(importPath, 'this node has no plugins_dir');
  const file = await fileOf(pluginsDir, importPath);
  const { mtimeMs } = await stat(file);
  const module = (await import(`${pathToFileURL(file)}?changed=${mtimeMs}`).catch((error: Error) => {
    throw invalid(importPath, `it cannot be loaded: ${error.message}`);
  })) as { adapter?: unknown };
  if (module.adapter === undefined) throw invalid(importPath, 'it exports no `adapter`');
  const found = checkStrict(shape, module.adapter, importPath, 'HARNESS_PLUGIN_INVALID');
  return {
    ...found,
    files: found.files ?? (() => []),
    readExit: found.readExit ?? readExit,
  } as unknown as Adapter;
}

/** Links may not lead out of the folder. */
async function fileOf(pluginsDir: string, importPath: string): Promise<string> {
  try {
    const folder = await realpath(pluginsDir);
    const file = await realpath(join(folder, importPath));
    if (file.startsWith(folder + sep)) return file;
  } catch (error) {
    throw invalid(importPath, `it is not there (${(error as NodeJS.ErrnoException).code})`);
  }
  throw invalid(importPath, 'it lies outside of plugins_dir');
}

const invalid = (importPath: string, why: string): PolarError =>
  new PolarError('HARNESS_PLUGIN_INVALID', `plug-in ${importPath}: ${why}`);
