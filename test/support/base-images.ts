// Stand-ins for the images that deploy/docker-compose.yaml takes from a registry, made here: Debian by debootstrap, with
// the Node.js that this checkout pins and npm; and nats-server.
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { ensureNatsServer } from '../../tools/nats-server.mjs';
import type { TestEngine } from './container-engine.ts';

const run = promisify(execFile);

export const NODE_IMAGE = 'polar-test-node:latest';
export const NATS_IMAGE = 'polar-test-nats:latest';

const RELEASE = 'bookworm';
const NPM = 'npm@11.19.1';
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';

/** Reaches Debian's mirror and npm's registry. */
export async function makeBaseImages(docker: TestEngine): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'polar-test-base-'));
  try {
    const debian = join(folder, 'debian');
    const include = '--include=busybox-static,ca-certificates';
    await run('debootstrap', ['--variant=minbase', include, RELEASE, debian], { maxBuffer: 1 << 26 });
    await importNats(docker, folder, debian);
    await importNode(docker, debian);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function importNode(docker: TestEngine, root: string): Promise<void> {
  await run('npm', ['install', '--global', '--prefix', join(root, 'usr/local'), NPM]);
  copyFileSync(process.execPath, join(root, 'usr/local/bin/node'));
  // Registries are trusted as on this machine.
  const own = process.env['NODE_EXTRA_CA_CERTS'];
  if (own !== undefined) copyFileSync(own, join(root, AUTHORITIES));
  await docker.importFolder(root, NODE_IMAGE);
  await docker.change(NODE_IMAGE, NODE_IMAGE, [`ENV NODE_EXTRA_CA_CERTS=${AUTHORITIES}`]);
}

/** As the public one: its arguments are those of nats-server, and there is a wget. */
async function importNats(docker: TestEngine, folder: string, debian: string): Promise<void> {
  const root = join(folder, 'nats');
  for (const name of ['bin', 'tmp']) mkdirSync(join(root, name), { recursive: true });
  copyFileSync(join(debian, 'bin/busybox'), join(root, 'bin/busybox'));
  for (const name of ['sh', 'wget', 'true']) symlinkSync('busybox', join(root, 'bin', name));
  copyFileSync(ensureNatsServer(), join(root, 'bin/nats-server'));
  await docker.importFolder(root, NATS_IMAGE);
  await docker.change(NATS_IMAGE, NATS_IMAGE, ['ENTRYPOINT ["/bin/nats-server"]']);
}
