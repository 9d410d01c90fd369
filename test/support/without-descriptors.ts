// A program in a process that has no file descriptor left.
import { execFile } from 'node:child_process';
import process from 'node:process';
import { promisify } from 'node:util';

const LIMIT_MS = 20_000;
const TAKE = `
  import { closeSync, openSync } from 'node:fs';
  const taken = [];
  /** All descriptors but so many. */
  const leave = (count) => {
    try { for (;;) taken.push(openSync('/dev/null')); } catch {}
    for (const fd of taken.splice(0, count)) closeSync(fd);
  };
  const leaveAll = () => { for (const fd of taken.splice(0)) closeSync(fd); };
`;

/** A module that may call `leave(count)` and `leaveAll()`, and prints JSON at its end, which is returned. */
export async function withoutDescriptors(program: string): Promise<unknown> {
  const argv = [process.execPath, '--input-type=module', '--eval', TAKE + program];
  const limited = ['-c', 'ulimit -n 100; exec "$@"', 'sh', ...argv];
  const { stdout } = await promisify(execFile)('sh', limited, { timeout: LIMIT_MS });
  return JSON.parse(stdout);
}
