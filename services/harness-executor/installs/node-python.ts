// The Python that sandboxes without an image have: the node's own.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { PolarError } from '../../common/errors.ts';
import type { Adapter } from '../adapters/adapter.ts';
import { findPython, type Python, pythonFound, wantedPython } from '../domain/python.ts';

/** Undefined where the harness needs none. Throws HARNESS_INSTALL_FAILED. */
export async function nodePython(
  { name, install }: Pick<Adapter, 'name' | 'install'>,
  signal: AbortSignal,
): Promise<Python | undefined> {
  if (install?.requirements === undefined) return undefined;
  const [program = '', ...args] = findPython(install.pythonMin);
  const printed = await promisify(execFile)(program, args, { signal }).then(
    ({ stdout }) => stdout,
    () => '',
  );
  const found = pythonFound(printed);
  if (found !== undefined) return found;
  const why = `${name} needs ${wantedPython(install.pythonMin)}, which this machine does not have: --python names that of a sandbox`;
  throw new PolarError('HARNESS_INSTALL_FAILED', why);
}
