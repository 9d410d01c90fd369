// Folders of the host shown inside a sandbox that runs already.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PolarError } from '../../common/errors.ts';
import { SANDBOX_START_MS } from '../../common/limits.ts';
import type { ResolvedMount } from '../domain/mounts.ts';
import { SYSTEM_PATH } from './tools.ts';

const SCRIPT = join(import.meta.dirname, 'mount_into.py');

/** Read-only, at folders that are there, in the mount namespace of `pid`. Throws SANDBOX_FAILED. */
export async function mountInto(
  python: string,
  pid: number,
  mounts: readonly ResolvedMount[],
): Promise<void> {
  const pairs = mounts.flatMap(({ source, target }) => [source, target]);
  try {
    await promisify(execFile)(python, ['-IS', SCRIPT, String(pid), ...pairs], {
      env: { PATH: SYSTEM_PATH },
      cwd: '/',
      timeout: SANDBOX_START_MS,
      // One that stands still ends by no other.
      killSignal: 'SIGKILL',
    });
  } catch (error) {
    const said = String((error as { stderr?: string }).stderr ?? '').trim();
    throw new PolarError('SANDBOX_FAILED', `nothing can be mounted into the sandbox: ${said}`);
  }
}
