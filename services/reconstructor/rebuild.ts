// Builds recorded calls again, those of a file or those that a mesh has stored: what `polar rebuild` runs.
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { JsonObject } from '@bufbuild/protobuf';
import { parsePlain } from '../common/config/faults.ts';
import { asPolarError, PolarError } from '../common/errors.ts';
import { exitCodeOf } from '../common/exit-codes.ts';
import { callsOfMesh, type StoredSessions } from './rebuild/mesh-calls.ts';
import { type CallsSource, callsOfFile } from './rebuild/read-calls.ts';
import { rebuild } from './rebuild/rebuild.ts';
import { type Builder, builderOf, fromPlugin } from './strategies/build-with.ts';

const PROGRESS_MS = 1_000;

const { values } = parseArgs({
  options: {
    builder: { type: 'string', default: 'prefix_merging' },
    'builder-config': { type: 'string', default: '{}' },
    'plugin-timeout': { type: 'string', default: '30' },
    // Absent: standard input says which sessions are asked for, and where (StoredSessions).
    calls: { type: 'string' },
    traces: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

/** A name, or a module: its path or file: URL. */
async function builder(): Promise<Builder> {
  const { builder: name } = values;
  const config = configOf(values['builder-config']);
  const plugin_timeout_seconds = Number(values['plugin-timeout']);
  if (!/\.(js|mjs|ts)$/.test(name)) return await builderOf(name, config, { plugin_timeout_seconds });
  const url = name.startsWith('file:') ? name : pathToFileURL(resolve(name)).href;
  const own = fromPlugin(name, url, config, plugin_timeout_seconds);
  // It would fail for each session.
  await own.load(stop.signal);
  return own;
}

async function source(tell: (text: string) => void): Promise<CallsSource> {
  const { calls } = values;
  if (calls === undefined)
    return callsOfMesh(JSON.parse(await text(process.stdin)) as StoredSessions, stop.signal);
  return callsOfFile(calls, (share) => tell(`read ${Math.floor(share * 100)} %`), stop.signal);
}

/** The calls are the record: traces do not take its place. Throws INVALID_REQUEST. */
function refuseSame(calls: string, traces: string): void {
  const [read, written] = [calls, traces].map((file) => statSync(file, { throwIfNoEntry: false }));
  if (read?.isFile() !== true || read.ino !== written?.ino || read.dev !== written.dev) return;
  throw new PolarError(
    'INVALID_REQUEST',
    `${traces} holds the calls that are read: name another file for the traces`,
  );
}

/** JSON, or the path of a JSON or YAML file. */
function configOf(given: string): JsonObject {
  try {
    return (parsePlain(given.trimStart().startsWith('{') ? given : readFileSync(given, 'utf8')) ??
      {}) as JsonObject;
  } catch (error) {
    throw new PolarError('INVALID_REQUEST', `--builder-config cannot be read: ${(error as Error).message}`);
  }
}

function progress(): (text: string) => void {
  let next = performance.now() + PROGRESS_MS;
  return (text) => {
    if (performance.now() < next) return;
    next = performance.now() + PROGRESS_MS;
    process.stderr.write(`${text}\n`);
  };
}

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  process.once(signal, () => stop.abort(new PolarError('CANCELLED', `ended by ${signal}`)));
}
try {
  const { calls, traces, json } = values;
  if (calls !== undefined && traces !== undefined) refuseSame(calls, traces);
  const onProgress = progress();
  const options = { builder: await builder(), source: await source(onProgress), traces, onProgress };
  const report = await rebuild(options, stop.signal);
  process.stdout.write(`${json ? JSON.stringify(report.toJson()) : report.toText()}\n`);
  process.exitCode = report.whole ? 0 : 1;
} catch (error) {
  const failure = asPolarError(stop.signal.aborted ? stop.signal.reason : error);
  process.stderr.write(`polar: ${failure.reason}: ${failure.message}\n`);
  process.exitCode = exitCodeOf(failure);
}
