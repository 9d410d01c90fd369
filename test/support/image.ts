// A root file system for a sandbox, made of this machine's programs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

const COPY = `set -e; image=$1; shift; for p; do cp -L $p "$image/bin/"; ldd $p | grep -o '/[^ ]*' | while read -r l; do
  mkdir -p "$image$(dirname $l)"; cp -L $l "$image$l"; done; done`;
const PROGRAMS = ['/bin/sh', '/bin/sleep'];

/** A shell, sleep, more programs, and what they need of libraries, as an image of that folder. */
export async function copyShell(image: string, more: readonly string[] = []): Promise<void> {
  for (const name of ['bin', 'usr/bin', 'lib', 'lib64', 'etc', 'tmp']) {
    mkdirSync(join(image, name), { recursive: true });
  }
  const [status] = await once(
    spawn('sh', ['-c', COPY, 'sh', image, ...PROGRAMS, ...more], { stdio: 'ignore' }),
    'exit',
  );
  if (status !== 0) throw new Error(`the image could not be made: ${status}`);
}
