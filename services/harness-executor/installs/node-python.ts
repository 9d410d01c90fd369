// The Python that a harness is installed for ahead of its sandboxes: of those without an image, the node's own.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { PolarError } from '../../common/errors.ts';
import type { Adapter } from '../adapters/adapter.ts';
import { findPython, isAtLeast, type Python, pythonFound, wantedPython } from '../domain/python.ts';

type Needs = Pick<Adapter, 'name' | 'install'>;

/** The node's; undefined where the harness needs none. Throws HARNESS_INSTALL_FAILED. */
export async function nodePython({ name, install }: Needs, signal: AbortSignal): Promise<Python | undefined> {
  if (install?.requirements === undefined) return undefined;
  const [program = '', ...args] = findPython(install.pythonMin);
  const printed = await promisify(execFile)(program, args, { signal }).then(
    ({ stdout }) => stdout,
    () => '',
  );
  signal.throwIfAborted();
  const found = pythonFound(printed);
  if (found !== undefined) return found;
  const why = `${name} needs ${wantedPython(install.pythonMin)}, which this machine does not have: --python names that of a sandbox`;
  throw new PolarError('HARNESS_INSTALL_FAILED', why);
}

/** `asked`, or else the node's; undefined where the harness needs none. Throws INVALID_REQUEST, HARNESS_INSTALL_FAILED. */
export async function pythonVersionFor(
  adapter: Needs,
  asked: string | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { name, install } = adapter;
  if (install?.requirements === undefined || asked === undefined)
    return (await nodePython(adapter, signal))?.version;
  if (/^3\.\d+$/.test(asked) && isAtLeast(asked, install.pythonMin)) return asked;
  const why = `--python must be as 3.13, and ${name} needs ${wantedPython(install.pythonMin)}`;
  throw new PolarError('INVALID_REQUEST', why);
}
