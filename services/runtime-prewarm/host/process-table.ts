// The processes of this machine, as the kernel lists them.
import { readdir, readFile } from 'node:fs/promises';
import process from 'node:process';

/** Kills each that `is` one that nobody has any more. To read of all of them takes tens of ms. */
export async function killWhere(is: (pid: string) => Promise<boolean>): Promise<void> {
  for (const name of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(name) || !(await is(name))) continue;
    try {
      process.kill(Number(name), 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}

/** One of its files; empty where it has ended. */
export const readOf = (pid: string, file: 'cmdline' | 'cgroup'): Promise<string> =>
  readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '');
