// The peers from PyPI, at the versions of peers/requirements-*.txt, each set in an environment of its own.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '../../../tools/nats-server.mjs';

export type PeerSet = 'peers' | 'litellm';

const folderOf = (set: PeerSet): string => join(cacheDir, 'bench', set);

export const binOf = (set: PeerSet, name: string): string => join(folderOf(set), 'bin', name);

/** Installs what is not there yet at these versions. */
export function installPeers(set: PeerSet, say: (text: string) => void): void {
  const requirements = join(import.meta.dirname, 'peers', `requirements-${set}.txt`);
  const packages = readFileSync(requirements, 'utf8');
  // What pip installs names its environment's folder, so that it runs nowhere else.
  const wanted = `${folderOf(set)}\n${packages}`;
  const stamp = join(folderOf(set), '.polar-stamp');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  say(`installing ${packages.trim().split('\n').join(', ')} …`);
  execFileSync('python3', ['-m', 'venv', '--clear', folderOf(set)], { stdio: 'inherit' });
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements];
  execFileSync(binOf(set, 'python'), pip, { stdio: 'inherit' });
  writeFileSync(stamp, wanted);
}
