// Images of apptainer's own format, made of this machine's programs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apptainer, pathWithApptainer } from './apptainer.ts';
import { copyShell } from './image.ts';

/** A shell that says which image it is of. */
export async function makeRoot(folder: string, name: string): Promise<void> {
  mkdirSync(join(folder, 'etc'), { recursive: true });
  writeFileSync(join(folder, 'etc/name'), `${name}\n`);
  mkdirSync(join(folder, '.singularity.d/env'), { recursive: true });
  writeFileSync(join(folder, '.singularity.d/env/90-environment.sh'), `export OF_IMAGE=${name}\n`);
  await copyShell(folder, ['/bin/rm']);
}

export async function makeSif(file: string, name: string, more = (_root: string): void => {}): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'polar-test-sif-'));
  try {
    await makeRoot(join(work, 'root'), name);
    more(join(work, 'root'));
    execFileSync(apptainer ?? '', ['--silent', 'build', '--force', file, join(work, 'root')], {
      env: { PATH: pathWithApptainer, HOME: work, APPTAINER_TMPDIR: work, APPTAINER_CACHEDIR: work },
    });
  } finally {
    rmSync(work, { recursive: true });
  }
}
