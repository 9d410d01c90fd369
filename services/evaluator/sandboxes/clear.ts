// Places of a sandbox that an agent may have written to, made empty before its grading writes there.
import { PolarError } from '../../common/errors.ts';
import { CLEAR_SECONDS, clearingFault, SESSION } from '../../common/specs/live-grading.ts';
import { leftMs, type OpenSandbox } from './sandbox.ts';

/**
 * Folders, `--`, and what is to go below them. An agent may have closed them, or have put links and files in their place: a
 * link is removed and not followed. Of what stays, as it is mounted or another user's, the content goes where it can.
 */
const CLEAR = [
  'while [ "$1" != -- ]; do [ -d "$1" ] || rm -f -- "$1"; chmod u+rwx -- "$1"; shift; done',
  'shift',
  'for target; do [ -L "$target" ] || chmod -R u+rwx -- "$target"; rm -rf -- "$target"; done',
].join('\n');

/**
 * Why something may be left; undefined: it ended. Throws INVALID_TASK for what is not the sandbox's own, EVALUATION_TIMEOUT, and
 * what the sandbox throws.
 */
export async function clear(
  sandbox: OpenSandbox,
  targets: readonly string[],
  remainingMs: () => number,
): Promise<string | undefined> {
  const isolates = await sandbox.isolates();
  for (const target of targets) {
    const fault = clearingFault(target, isolates, sandbox.workdir);
    if (fault !== undefined) throw new PolarError('INVALID_TASK', `evaluator.config: ${target} ${fault}`);
  }
  const limitMs = CLEAR_SECONDS * 1000;
  const timeoutMs = Math.min(limitMs, leftMs(remainingMs));
  const above = targets.flatMap(foldersAbove).filter((path) => isolates || path.startsWith(`${SESSION}/`));
  const argv = ['/bin/sh', '-c', CLEAR, 'sh', ...above, '--', ...targets];
  const { result } = await sandbox.exec(argv, timeoutMs);
  if (!result.timedOut) return undefined;
  if (timeoutMs < limitMs) throw new PolarError('EVALUATION_TIMEOUT', 'the evaluate budget was spent');
  return `could not clear ${targets.join(' and ')} in ${CLEAR_SECONDS} s`;
}

/** `/a` and `/a/b` of `/a/b/c`. */
function foldersAbove(path: string): string[] {
  const parts = path.split('/').slice(1, -1);
  return parts.map((_, i) => `/${parts.slice(0, i + 1).join('/')}`);
}
