// The CLIs in the cache, each in the one version that its adapter pins.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { HARNESS_INSTALL_MS } from '../../services/common/limits.ts';
import type { HarnessPackage } from '../../services/harness-executor/adapters/adapter.ts';
import { ensureInstalled, type InstallEvents } from '../../services/harness-executor/installs/install.ts';
import { nodePython } from '../../services/harness-executor/installs/node-python.ts';
import type { Cli } from './clis/cli.ts';

export const CACHE = process.env['POLAR_CACHE_DIR'] ?? join(import.meta.dirname, '../../.cache');

/** Install a CLI unless it is there; its folder. Throws where what is there calls itself another version. */
export async function installed({ adapter }: Cli, events: InstallEvents): Promise<string> {
  const signal = AbortSignal.timeout(HARNESS_INSTALL_MS);
  const python = (await nodePython(adapter, signal))?.version;
  const folder = await ensureInstalled(CACHE, { ...adapter, python }, events, signal);
  if (folder === undefined || adapter.install === undefined) throw new Error(`${adapter.name} is no CLI`);
  const version = versionIn(folder, adapter.install);
  if (version === adapter.version) return folder;
  throw new Error(`${adapter.name} in ${folder} is ${version}, not ${adapter.version}: remove that folder`);
}

function versionIn(folder: string, install: HarnessPackage): string | undefined {
  if (install.requirements === undefined) {
    const text = readFileSync(join(folder, 'node_modules', install.name, 'package.json'), 'utf8');
    return (JSON.parse(text) as { version: string }).version;
  }
  const name = install.name.replaceAll('-', '_');
  const suffix = '.dist-info';
  const described = readdirSync(folder).find((one) => one.startsWith(`${name}-`) && one.endsWith(suffix));
  return described?.slice(name.length + 1, -suffix.length);
}
