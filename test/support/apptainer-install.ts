// Gets apptainer for the tests where Debian has it: 12 does not, unstable does. It is not installed but unpacked, with the
// libraries that it needs of that release, which its programs are told to use (patchelf).
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { APPTAINER_FOLDER, apptainer } from './apptainer.ts';

const PACKAGES = ['apptainer', 'libc6', 'libseccomp2', 'libsqlite3-0', 'zlib1g'];
const RELEASE = 'unstable';
const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';
const BIN = 'usr/bin/apptainer';
const STARTER = 'usr/lib/x86_64-linux-gnu/apptainer/bin/starter';
/** Found from the place of its programs, as it finds its configuration. */
const SESSIONS = 'usr/lib/var/lib/apptainer/mnt/session';

const output = (command: string, args: readonly string[], cwd = '/'): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** The archive that this machine's own packages come from. */
function archive(): string {
  const format = ['--format', '$(SITE)', 'Created-By: Packages', 'Component: main'];
  const [site] = output('apt-get', ['indextargets', ...format]).split('\n');
  if (!site) throw new Error('apt-get knows no archive');
  return site;
}

/** With lists and caches of its own: the machine's stay as they are. */
function download(folder: string): void {
  const list = join(folder, 'sources.list');
  writeFileSync(list, `deb [signed-by=${KEYS}] ${archive()} ${RELEASE} main\n`);
  for (const part of ['state/lists/partial', 'cache/archives/partial']) {
    mkdirSync(join(folder, part), { recursive: true });
  }
  const own = [
    ...['-o', `Dir::Etc::SourceList=${list}`, '-o', 'Dir::Etc::SourceParts=/dev/null'],
    ...['-o', `Dir::State=${join(folder, 'state')}`, '-o', `Dir::Cache=${join(folder, 'cache')}`],
    ...['-o', 'APT::Sandbox::User=root', '-qq'],
  ];
  output('apt-get', [...own, 'update']);
  output('apt-get', [...own, 'download', ...PACKAGES], folder);
}

function unpack(folder: string, root: string): void {
  const isProgram = (name: string): boolean => name.startsWith('apptainer_');
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.deb'))) {
    output('dpkg-deb', ['-x', join(folder, name), isProgram(name) ? root : join(root, 'libraries')]);
  }
  const libraries = join(root, 'libraries/usr/lib/x86_64-linux-gnu');
  const final = libraries.replace(root, APPTAINER_FOLDER);
  for (const program of [BIN, STARTER]) {
    const loader = ['--set-interpreter', join(final, 'ld-linux-x86-64.so.2')];
    output('patchelf', [...loader, '--force-rpath', '--set-rpath', final, join(root, program)]);
  }
  mkdirSync(join(root, 'usr/etc'), { recursive: true });
  symlinkSync('../../etc/apptainer', join(root, 'usr/etc/apptainer'));
  mkdirSync(join(root, SESSIONS), { recursive: true });
}

function install(): void {
  const work = `${APPTAINER_FOLDER}.new`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(join(work, 'root'), { recursive: true });
  try {
    download(work);
    unpack(work, join(work, 'root'));
    rmSync(APPTAINER_FOLDER, { recursive: true, force: true });
    renameSync(join(work, 'root'), APPTAINER_FOLDER);
    process.stderr.write(output(join(APPTAINER_FOLDER, BIN), ['--version']));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

// One of the machine's own is taken as it is; setup calls this once for each state of this file.
if (apptainer === undefined || apptainer.startsWith(APPTAINER_FOLDER)) install();
