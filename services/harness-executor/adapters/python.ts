// Programs from PyPI run on a Python of the sandbox: packages for one version of it do not run on another.
import { existsSync } from 'node:fs';
import { HARNESS_MOUNT } from './adapter.ts';

/** The Python that a sandbox on the host's /usr finds first, and for which packages are installed. */
export const SANDBOX_PYTHON =
  ['/usr/local/bin/python3', '/usr/bin/python3'].find((path) => existsSync(path)) ?? 'python3';

/** Environment of a program whose packages are all in its own folder. */
export const pythonEnv = (harness: string): Record<string, string> => ({
  PYTHONPATH: `${HARNESS_MOUNT}/${harness}`,
  PYTHONDONTWRITEBYTECODE: '1',
});
