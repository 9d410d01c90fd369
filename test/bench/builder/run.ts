// npm run bench:builder: what a build takes as a session grows, as a table and a chart in docs/benchmarks.md.
//   node test/bench/builder/run.ts [--write]    with --write into the document
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { nodeFlagsOf } from '../../../clients/cli/services.ts';
import { chart } from '../proxy/chart.ts';
import { writePart } from '../proxy/report.ts';
import { medianOf } from '../proxy/statistics.ts';
import { type Built, firstMs, measure } from './measure.ts';
import { TURN_TOKENS } from './sessions.ts';

const DOCS = join(import.meta.dirname, '../../../docs');
const SIZES = [25, 50, 100, 200, 400, 600, 800] as const;
/** Evenly spread, as the chart's points are. */
const CHARTED: readonly (typeof SIZES)[number][] = [200, 400, 600, 800];
/** So many turns are a whole number of sessions of each size. */
const ROUNDS = { rounds: 40, warmUp: 8, turns: 2_400 };
const FIRST_BUILDS = 5;
/** Of 200 turns and 100,000 ids. */
const GOAL_MS = 50;
const GOAL_TURNS = 200;

const { values } = parseArgs({
  options: {
    first: { type: 'string' },
    sizes: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
});
const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** What another process with these flags says. */
const inProcess = (flags: readonly string[], ...args: string[]): string =>
  execFileSync(process.execPath, [...flags, import.meta.filename, ...args], { encoding: 'utf8' });

const firstsOf = (turns: number): number =>
  medianOf(Array.from({ length: FIRST_BUILDS }, () => Number(inProcess(FLAGS, '--first', String(turns)))));

/** With which the mesh starts the process that builds. */
const FLAGS = nodeFlagsOf('reconstructor');

interface Row {
  readonly turns: number;
  readonly timeMs: number;
  readonly cpuMs: number;
  /** Half of the rounds differ by less from the median, as a share of it. */
  readonly spread: number;
}

function rowOf({ turns, timesMs, cpuMs }: Built): Row {
  const median = medianOf(timesMs);
  const spread = medianOf(timesMs.map((one) => Math.abs(one - median))) / median;
  return { turns, timeMs: median, cpuMs: medianOf(cpuMs), spread };
}

const rowsWith = (flags: readonly string[]): Row[] => JSON.parse(inProcess(flags, '--sizes')) as Row[];
const ms = (value: number): string => value.toFixed(value < 10 ? 1 : 0);
/** As many times what a session of half the turns takes, where that was measured. */
function times(rows: readonly Row[], row: Row, of: 'timeMs' | 'cpuMs'): string {
  const half = rows.find(({ turns }) => turns === row.turns / 2);
  return half === undefined ? '–' : (row[of] / half[of]).toFixed(2);
}

function table(shipped: readonly Row[], large: readonly Row[]): string {
  const lines = shipped.map((row, i) => {
    const { turns, timeMs, cpuMs, spread } = row;
    const other = large[i] as Row;
    return `| ${turns} | ${(turns * TURN_TOKENS).toLocaleString('en')} | ${ms(firstsOf(turns))} | ${ms(timeMs)} ± ${Math.round(100 * spread)} % | ${ms(cpuMs)} | ${times(shipped, row, 'timeMs')} | ${times(shipped, row, 'cpuMs')} | ${ms(other.timeMs)} ± ${Math.round(100 * other.spread)} % | ${times(large, other, 'timeMs')} |`;
  });
  const across = (rows: readonly Row[]): string =>
    ((rows.at(-1) as Row).timeMs / (rows[0] as Row).timeMs).toFixed(1);
  return [
    `${cpus()[0]?.model.trim() ?? ''}, ${cpus().length} cores, Node.js ${process.version}; ${new Date().toISOString().slice(0, 10)}. Goal: ${GOAL_TURNS} turns in ${GOAL_MS} ms, and at most twice as long for twice the turns.`,
    '',
    '| turns | ids | first build, ms | build, ms | CPU, ms | times half the turns: build | CPU | build with a young generation of 16 MB, ms | times half the turns |',
    '|--:|--:|--:|--:|--:|--:|--:|--:|--:|',
    ...lines,
    '',
    `From ${SIZES[0]} to ${SIZES.at(-1)} turns, ${(SIZES.at(-1) as number) / SIZES[0]} times as many, a build takes ${across(shipped)} times as long; with a young generation of 16 MB ${across(large)} times.`,
    '',
    '![Time of a build by turns](benchmarks-builder.svg)',
  ].join('\n');
}

function draw(rows: readonly Row[]): string {
  const at = new Map(rows.map(({ turns, timeMs }) => [turns, timeMs]));
  // The axis begins at a session without turns, of which nothing is built.
  const values = [0, ...CHARTED.map((turns) => at.get(turns) as number)];
  const named = { name: 'build, ms', values, colour: '#c22' };
  const across = { name: `turns of ${TURN_TOKENS} ids each`, most: CHARTED.at(-1) as number };
  return chart([{ title: 'time of a build, ms', across, lines: [named] }], 'Time of a build by turns');
}

if (values.first !== undefined) say(String(firstMs(Number(values.first))));
else if (values.sizes) say(JSON.stringify(measure(SIZES, ROUNDS).map(rowOf)));
else {
  const shipped = rowsWith(FLAGS);
  const text = table(shipped, rowsWith(['--max-semi-space-size=16']));
  say(text);
  if (values.write) {
    writePart(join(DOCS, 'benchmarks.md'), 'builder', text);
    writeFileSync(join(DOCS, 'benchmarks-builder.svg'), draw(shipped));
  }
}
