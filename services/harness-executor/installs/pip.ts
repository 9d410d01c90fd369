// Packages from PyPI: exactly those of a list, as wheels for a Python that a sandbox has.
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CommandEnd, runCommand } from './command.ts';

/** A copy of the list, in what was made of it. */
export const LIST = 'requirements.txt';

/** A Python with pip installs for another: the sandbox's own needs none. What a package requires pip compares with its own Python. */
const SCRIPT = [
  'exec python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \\',
  '  --ignore-requires-python \\',
  '  --python-version "$1" --target "$2" -r "$3"',
].join('\n');

/** Install what `requirements` lists below `folder`, for a Python of that minor version. */
export async function pipInstall(
  folder: string,
  pythonVersion: string,
  requirements: string,
  signal: AbortSignal,
): Promise<CommandEnd> {
  const argv = ['sh', '-c', SCRIPT, 'sh', pythonVersion, folder, requirements];
  const end = await runCommand(folder, argv, signal);
  if (end.exitCode === 0) await copyFile(requirements, join(folder, LIST));
  return end;
}
