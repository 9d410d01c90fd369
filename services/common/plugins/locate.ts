// Modules that a task names by path, below the folder that the operator chose.
import { realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { PolarError } from '../errors.ts';

/** The file: URL of a module; `invalid` makes the error where there is none. Links may not lead out of the folder. */
export async function pluginUrl(
  pluginsDir: string,
  path: string,
  invalid: (why: string) => PolarError,
): Promise<string> {
  try {
    const folder = await realpath(pluginsDir);
    const file = await realpath(join(folder, path));
    if (file.startsWith(folder + sep)) return pathToFileURL(file).href;
  } catch (error) {
    throw invalid(`it is not there (${(error as NodeJS.ErrnoException).code})`);
  }
  throw invalid('it lies outside of plugins_dir');
}
