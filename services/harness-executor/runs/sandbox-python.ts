// The Python of a leased sandbox, for a program from PyPI: images have one or another, or none.
import { PolarError } from '../../common/errors.ts';
import { execCollected, type Runtimes } from '../../common/exec.ts';
import type { Adapter } from '../adapters/adapter.ts';
import { findPython, type Python, pythonFound, wantedPython } from '../domain/python.ts';
import { sandboxCall } from './sandbox.ts';

/** Finding it; then SANDBOX_FAILED. */
const LOOK_MS = 30_000;

/** Undefined: it needs none. Throws INVALID_TASK where the sandbox has none that is new enough, RUNTIME_LOST, SANDBOX_FAILED. */
export async function sandboxPython(
  runtimes: Runtimes,
  runtimeId: string,
  { name, install }: Adapter,
  signal: AbortSignal,
): Promise<Python | undefined> {
  if (install?.requirements === undefined) return undefined;
  const look = { runtimeId, argv: findPython(install.pythonMin), timeoutMs: LOOK_MS };
  const { result, stdout, stderr } = await sandboxCall(execCollected(runtimes, look, signal));
  if (result.timedOut) throw new PolarError('SANDBOX_FAILED', `no Python was found in ${LOOK_MS} ms`);
  const found = pythonFound(Buffer.from(stdout).toString());
  if (found !== undefined) return found;
  const why = `${name} needs ${wantedPython(install.pythonMin)} in the sandbox, which has ${olderIn(stderr)}`;
  throw new PolarError('INVALID_TASK', `runtime.image: ${why}`);
}

/** "3.10, 3.11" */
function olderIn(told: Uint8Array): string {
  const versions = Buffer.from(told)
    .toString()
    .match(/^3\.\d+$/gm);
  return versions === null ? 'none' : [...new Set(versions)].join(', ');
}
