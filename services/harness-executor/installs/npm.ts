// Packages from npm.
import { join } from 'node:path';
import process from 'node:process';
import type { HarnessPackage } from '../adapters/adapter.ts';
import { type CommandEnd, runCommand } from './command.ts';

/** Install one package below `folder`. Install scripts do not run, but for the one that the adapter names. */
export async function npmInstall(
  folder: string,
  { name, version, script }: HarnessPackage,
  signal: AbortSignal,
): Promise<CommandEnd> {
  const args = ['--ignore-scripts', '--no-audit', '--no-fund', '--omit=dev', '--save-exact'];
  const argv = ['npm', 'install', `${name}@${version}`, ...args, '--prefix', folder];
  const end = await runCommand(folder, argv, signal);
  if (end.exitCode !== 0 || script === undefined) return end;
  return await runCommand(folder, [process.execPath, join(folder, script)], signal);
}
