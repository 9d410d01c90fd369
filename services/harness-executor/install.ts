// Installs a harness into the node's cache ahead of time:
// `npx node services/harness-executor/install.ts NAME [--cache-dir DIR] [--python VERSION]`.
import { resolve } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { asPolarError } from '../common/errors.ts';
import { adapterOf } from './adapters/index.ts';
import { readConfig } from './config.ts';
import { ensureInstalled } from './installs/install.ts';
import { pythonVersionFor } from './installs/node-python.ts';

const say = (text: string): boolean => process.stderr.write(`${text}\n`);
const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`;

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
try {
  const { values, positionals } = parseArgs({
    options: { 'cache-dir': { type: 'string' }, python: { type: 'string' } },
    allowPositionals: true,
  });
  const cacheDir = resolve(values['cache-dir'] ?? readConfig(process.env).node.cache_dir);
  for (const name of positionals) {
    const adapter = adapterOf(name);
    const python = await pythonVersionFor(adapter, values.python, stop.signal);
    await ensureInstalled(
      cacheDir,
      { ...adapter, python },
      {
        started: (harness, version) => say(`installing harness ${harness} ${version} …`),
        progress: (harness, elapsedMs) => say(`installing harness ${harness}: ${seconds(elapsedMs)}`),
        done: (harness, elapsedMs) => say(`installed harness ${harness} in ${seconds(elapsedMs)}`),
      },
      stop.signal,
    );
  }
} catch (error) {
  const { reason, message } = asPolarError(error);
  say(`polar: ${reason}: ${message}`);
  process.exitCode = 1;
}
