// Packages from PyPI: exactly those of a list, as wheels for the Python that a sandbox has.
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SANDBOX_PYTHON } from '../adapters/python.ts';
import { type CommandEnd, runCommand } from './command.ts';

/** A copy of the list, in what was made of it. */
export const LIST = 'requirements.txt';

/** A Python with pip installs for another: the sandbox's own needs none. */
const SCRIPT = [
  'version=$("$1" -c "import sys; print(\'%d.%d\' % sys.version_info[:2])") || exit',
  'exec python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \\',
  '  --python-version "$version" --target "$2" -r "$3"',
].join('\n');

/** Install what `requirements` lists below `folder`. */
export async function pipInstall(
  folder: string,
  requirements: string,
  signal: AbortSignal,
): Promise<CommandEnd> {
  const argv = ['sh', '-c', SCRIPT, 'sh', SANDBOX_PYTHON, folder, requirements];
  const end = await runCommand(folder, argv, signal);
  if (end.exitCode === 0) await copyFile(requirements, join(folder, LIST));
  return end;
}
