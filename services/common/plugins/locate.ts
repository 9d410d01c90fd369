// Modules that a task names by path, below the folder that the operator chose.
import { realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { PolarError } from '../errors.ts';
import { isShortage } from '../shortage.ts';

/** What there is to say of a module that cannot be had. */
export interface Unfound {
  /** There is none. */
  readonly invalid: (why: string) => PolarError;
  /** It may be there: no task is to blame. */
  readonly unread: (why: string) => PolarError;
}

/** The file: URL of a module. Throws one of `unfound`; links may not lead out of the folder. */
export async function pluginUrl(
  pluginsDir: string,
  path: string,
  { invalid, unread }: Unfound,
): Promise<string> {
  try {
    const folder = await realpath(pluginsDir);
    const file = await realpath(join(folder, path));
    if (file.startsWith(folder + sep)) return pathToFileURL(file).href;
  } catch (error) {
    if (isShortage(error)) throw unread(`it cannot be read: ${(error as Error).message}`);
    throw invalid(`it is not there (${(error as NodeJS.ErrnoException).code})`);
  }
  throw invalid('it lies outside of plugins_dir');
}
