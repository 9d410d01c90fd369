// Programs from PyPI run on a Python of the sandbox: packages for one version of it do not run on another.
import { HARNESS_MOUNT } from './adapter.ts';

/** Environment of a program whose packages are all in its own folder. */
export const pythonEnv = (harness: string): Record<string, string> => ({
  PYTHONPATH: `${HARNESS_MOUNT}/${harness}`,
  PYTHONDONTWRITEBYTECODE: '1',
});
