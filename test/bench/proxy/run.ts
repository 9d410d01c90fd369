// npm run bench:proxy: what the llm-proxy costs, side by side with peers. Writes its part of docs/benchmarks.md.
//   --quick         one round of short measurements; nothing is written
//   --rounds N      default 3
//   --only A,B      these candidates
import { execFileSync } from 'node:child_process';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { CANDIDATES, type CandidateName, OTHER_CORE } from './candidates.ts';
import { type Cell, cellsOf, warmUp } from './cells.ts';
import { installPeers } from './install.ts';
import { Bench, type Sample } from './measure.ts';

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: Object.keys(CANDIDATES).join(',') },
    cells: { type: 'string', default: '' },
  },
});
const say = (text: string): void => void process.stderr.write(`${text}\n`);

const told = (figures: Readonly<Record<string, number>>): string =>
  Object.entries(figures)
    .map(([name, value]) => `${name} ${value.toPrecision(3)}`)
    .join('  ');

async function round(bench: Bench, name: CandidateName, cells: readonly Cell[], into: Results): Promise<void> {
  await using candidate = await CANDIDATES[name](bench.enginePort);
  await bench.sample(warmUp, candidate);
  for (const cell of cells) {
    const sample = await bench.sample(cell, candidate);
    const errors = Object.keys(sample.errors).length === 0 ? '' : `  ${JSON.stringify(sample.errors)}`;
    say(`${name} ${cell.name}: ${told(sample.figures)}  foreign ${sample.foreign.toFixed(2)}${errors}`);
    into.push({ candidate: name, cell: cell.name, sample });
  }
}

type Results = { candidate: CandidateName; cell: string; sample: Sample }[];

async function main(): Promise<void> {
  execFileSync('taskset', ['-acp', String(OTHER_CORE), String(process.pid)], { stdio: 'ignore' });
  const names = flags.only.split(',') as CandidateName[];
  if (names.includes('vllm-router') || names.includes('fastapi-httpx')) installPeers('peers', say);
  if (names.includes('litellm')) installPeers('litellm', say);
  const wanted = flags.cells.split(',').filter(Boolean);
  const cells = cellsOf(flags.quick).filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  await using bench = await Bench.start();
  const results: Results = [];
  for (let i = 0; i < (flags.quick ? 1 : Number(flags.rounds)); i++) {
    for (const name of names) await round(bench, name, cells, results);
  }
}

await main();
