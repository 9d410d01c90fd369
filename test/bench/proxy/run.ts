// npm run bench:proxy: what the llm-proxy costs, side by side with peers, and how it grows. Writes docs/benchmarks.md.
//   --quick           one round of short measurements, and nothing is written
//   --write           write even so
//   --rounds N        default 3
//   --parts A,B       of cost, growth, soak
//   --only A,B        these candidates; then nothing is written
//   --cells A,B       these measurements; then nothing is written
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { CANDIDATES, type CandidateName, OTHER_CORE } from './candidates.ts';
import { type Cell, cellsOf, warmUpsOf } from './cells.ts';
import { measureGrowth } from './growth.ts';
import { growthChart, growthTable, soakTable } from './growth-report.ts';
import { installPeers } from './install.ts';
import { Bench } from './measure.ts';
import { costReport, type Result, writePart } from './report.ts';
import { measureSoak } from './soak.ts';

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '3' },
    parts: { type: 'string', default: 'cost,growth,soak' },
    only: { type: 'string', default: '' },
    cells: { type: 'string', default: '' },
  },
});
const DOCUMENTS = join(import.meta.dirname, '../../../docs');
const SOAK_SESSIONS = flags.quick ? 200 : 2_000;

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const listed = (flag: string): string[] => flag.split(',').filter(Boolean);
const parts = listed(flags.parts);
/** Figures of a part of the whole are for who looks at them. */
const written = flags.write || (!flags.quick && flags.only === '' && flags.cells === '');

const told = (figures: Readonly<Record<string, number>>): string =>
  Object.entries(figures)
    .map(([name, value]) => `${name} ${Number(value.toPrecision(3))}`)
    .join('  ');

async function measure(
  bench: Bench,
  round: number,
  name: CandidateName,
  cells: readonly Cell[],
): Promise<Result[]> {
  await using candidate = await CANDIDATES[name](bench.enginePort);
  for (const warmUp of warmUpsOf(flags.quick)) await bench.sample(warmUp, candidate);
  const results: Result[] = [];
  for (const cell of cells) {
    const { figures, foreign, errors } = await bench.sample(cell, candidate);
    const failed = Object.keys(errors).length === 0 ? '' : `  ${JSON.stringify(errors)}`;
    say(`${name} ${cell.name}: ${told(figures)}  others ${foreign.toFixed(2)}${failed}`);
    results.push({ round, candidate: name, cell: cell.name, figures, foreign });
  }
  return results;
}

function unmeasured(name: CandidateName, error: Error): Result[] {
  say(`${name}: ${error.message}`);
  return [];
}

async function cost(bench: Bench): Promise<void> {
  const names = (flags.only === '' ? Object.keys(CANDIDATES) : listed(flags.only)) as CandidateName[];
  if (names.includes('vllm-router') || names.includes('fastapi-httpx')) installPeers('peers', say);
  if (names.includes('litellm')) installPeers('litellm', say);
  const wanted = listed(flags.cells);
  const cells = cellsOf(flags.quick).filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  const rounds = flags.quick ? 1 : Number(flags.rounds);
  const results: Result[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      // One that does not start is missing in the tables.
      results.push(...(await measure(bench, round, name, cells).catch((error) => unmeasured(name, error))));
    }
  }
  const report = costReport(results, about(rounds));
  if (written) writePart(join(DOCUMENTS, 'benchmarks.md'), 'proxy cost', report);
  else say(`\n${report}`);
}

const about = (rounds: number): string[] => [
  `${cpus()[0]?.model ?? 'unknown'}, ${cpus().length} cores, Node.js ${process.version};`,
  `${new Date().toISOString().slice(0, 10)}; ${flags.quick ? 'a quick run' : rounds === 1 ? 'one round' : `medians of ${rounds} rounds`}.`,
];

async function growth(bench: Bench): Promise<void> {
  const grown = parts.includes('growth') ? await measureGrowth(bench.enginePort, say) : undefined;
  const residentMiB = parts.includes('soak') ? await measureSoak(bench, SOAK_SESSIONS, say) : undefined;
  const calls = SOAK_SESSIONS * 100;
  const tables = [
    ...(grown === undefined ? [] : [growthTable(grown)]),
    ...(residentMiB === undefined ? [] : [soakTable(residentMiB, calls)]),
  ].join('\n\n');
  if (!written || grown === undefined || residentMiB === undefined) return say(`\n${tables}`);
  writeFileSync(join(DOCUMENTS, 'benchmarks-growth.svg'), growthChart(grown, residentMiB, calls));
  const image = '![Cost, storage and memory of a growing session](benchmarks-growth.svg)';
  writePart(join(DOCUMENTS, 'benchmarks.md'), 'proxy growth', `${tables}\n\n${image}`);
}

// All but what is measured stays off its core; children inherit this.
execFileSync('taskset', ['-acp', String(OTHER_CORE), String(process.pid)], { stdio: 'ignore' });
await using bench = await Bench.start();
if (parts.includes('cost')) await cost(bench);
if (parts.includes('growth') || parts.includes('soak')) await growth(bench);
