// Device files that stand for GPUs: the kernel's harmless ones, under other names.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

/** Minor numbers of /dev/null and /dev/zero. */
const MINORS = [3, 5];
const FULL = 7;

export interface TestDevices extends Disposable {
  readonly devices: readonly { readonly id: string; readonly device: string }[];
  readonly common: readonly string[];
  /** What `ls /dev` shows of all of them. */
  readonly pattern: string;
}

/** Two GPUs, 0 that is empty and 1 that gives zeros, and a file that goes with both. `atDev`: directly in /dev. */
export function makeDevices(atDev = false): TestDevices {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-gpus-'));
  chmodSync(folder, 0o755);
  const prefix = atDev ? join('/dev', basename(folder)) : join(folder, 'gpu');
  const made: string[] = [];
  const node = (name: string, minor: number): string => {
    const path = `${prefix}${name}`;
    execFileSync('mknod', ['-m', '666', path, 'c', '1', String(minor)]);
    made.push(path);
    return path;
  };
  return {
    devices: MINORS.map((minor, i) => ({ id: String(i), device: node(String(i), minor) })),
    common: [node('ctl', FULL)],
    pattern: basename(prefix),
    [Symbol.dispose]() {
      for (const path of made) rmSync(path, { force: true });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
