// Packages from npm.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import type { HarnessPackage } from '../adapters/adapter.ts';
import { leftOut, type Machine } from '../domain/left-out.ts';
import { type CommandEnd, runCommand } from './command.ts';

const NODE_MODULES = /^.*node_modules\//;

/**
 * Install one package below `folder`. Install scripts do not run, but for the one that the adapter names. Throws where npm
 * has left out what it could not fetch: that would be another program than the one that other nodes have, for good.
 */
export async function npmInstall(
  folder: string,
  { name, version, script }: HarnessPackage,
  signal: AbortSignal,
): Promise<CommandEnd> {
  const args = [
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--no-update-notifier',
    '--omit=dev',
    '--save-exact',
  ];
  const argv = ['npm', 'install', `${name}@${version}`, ...args, '--prefix', folder];
  const end = await runCommand(folder, argv, signal);
  if (end.exitCode !== 0) return end;
  const missing = await missingIn(folder);
  if (missing.length > 0) throw new Error(`npm could not fetch ${missing.join(', ')}: ${end.outputTail}`);
  if (script === undefined) return end;
  return await runCommand(folder, [process.execPath, join(folder, script)], signal);
}

/** Names of optional packages. */
async function missingIn(folder: string): Promise<string[]> {
  const lock = await readFile(join(folder, 'package-lock.json'), 'utf8').catch(() => '{}');
  const { packages = {} } = JSON.parse(lock) as { packages?: Parameters<typeof leftOut>[0] };
  const paths = leftOut(packages, (path) => existsSync(join(folder, path)), thisMachine());
  return paths.map((path) => path.replace(NODE_MODULES, ''));
}

function thisMachine(): Machine {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  const libc = header.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
  return { os: process.platform, cpu: process.arch, libc, node: process.versions.node };
}
