// npm run test:conformance: every CLI on every case. `--cli a,b` and `--case a,b` choose; `--jobs N` at once.
// Writes docs/conformance.md; where something was chosen, only with `--renew`.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { toJson } from '@bufbuild/protobuf';
import { CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { bwrapIsThere } from '../support/runtime-prewarm.ts';
import { CASES } from './cases/index.ts';
import { CLIS } from './clis/index.ts';
import { page, type Result } from './matrix.ts';
import type { Seen } from './trial.ts';
import { installAll, pairsOf, runPairs, Sites } from './trials.ts';
import { told } from './verdict.ts';

const PAGE = join(import.meta.dirname, '../../docs/conformance.md');

const { values: flags } = parseArgs({
  options: {
    cli: { type: 'string' },
    case: { type: 'string' },
    jobs: { type: 'string', default: '4' },
    renew: { type: 'boolean', default: false },
    /** A folder for what each trial did and left. */
    logs: { type: 'string' },
  },
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

function chosen<T extends { readonly name: string }>(all: readonly T[], names: string | undefined): T[] {
  const wanted = names?.split(',');
  const unknown = wanted?.find((name) => !all.some((one) => one.name === name));
  if (unknown !== undefined) throw new Error(`no ${unknown}; there are ${all.map(({ name }) => name)}`);
  return all.filter(({ name }) => wanted?.includes(name) ?? true);
}

function tell({ cli, one, faults, ms, calls, traces }: Result, seen: Seen): void {
  if (flags.logs !== undefined) keep(flags.logs, `${cli.name}-${one.name}`, seen);
  const outcome = faults.length === 0 ? 'ok    ' : 'FAILED';
  say(`${outcome} ${cli.name} ${one.name}: ${seconds(ms)}, ${calls} calls, ${traces} traces`);
  if (faults.length > 0) say([...faults, told(seen)].join('\n').replaceAll(/^/gm, '    '));
}

function keep(folder: string, name: string, seen: Seen): void {
  mkdirSync(folder, { recursive: true });
  const records = seen.records.map((record) => toJson(CompletionSchema, record));
  writeFileSync(join(folder, `${name}.json`), JSON.stringify({ ...seen, records }, undefined, 1));
}

async function main(): Promise<boolean> {
  if (!bwrapIsThere) throw new Error('bubblewrap is not here: apt install bubblewrap');
  const started = performance.now();
  const clis = chosen(CLIS, flags.cli);
  const cases = chosen(CASES, flags.case);
  const programs = await installAll(clis, {
    started: (name, version) => say(`installing ${name} ${version}`),
    progress: () => {},
    done: (name, ms) => say(`installed ${name} in ${seconds(ms)}`),
  });
  const pairs = pairsOf(clis, cases);
  await using sites = await Sites.start(pairs);
  const results = await runPairs(pairs, programs, sites, Number(flags.jobs), tell);
  const failed = results.filter(({ faults }) => faults.length > 0).length;
  const took = seconds(performance.now() - started);
  say(`${results.length - failed} passed, ${failed} failed in ${took}`);
  const whole = clis.length === CLIS.length && cases.length === CASES.length;
  if (whole || flags.renew) renew(results, whole ? `${results.length} trials in ${took}` : undefined);
  return failed === 0;
}

/** Cells that were not tried stay as they are. */
function renew(results: readonly Result[], whole: string | undefined): void {
  const day = new Date().toISOString().slice(0, 10);
  const before = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '';
  const note =
    whole === undefined
      ? (/Last whole run: .*$/m.exec(before)?.[0] ?? 'No whole run yet.')
      : `Last whole run: ${day}, ${whole} on ${cpus().length} cores, ${flags.jobs} at once.`;
  writeFileSync(PAGE, page(CLIS, CASES, results, note, before));
}

if (!(await main())) process.exitCode = 1;
