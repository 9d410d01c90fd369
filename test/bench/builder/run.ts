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
import { type Interval, medianOf, medianWithin } from '../proxy/statistics.ts';
import { type Built, firstMs, measure } from './measure.ts';
import { TURN_TOKENS } from './sessions.ts';

const DOCS = join(import.meta.dirname, '../../../docs');
const SIZES = [25, 50, 100, 200, 400, 600, 800] as const;
/** Evenly spread, as the chart's points are. */
const CHARTED: readonly (typeof SIZES)[number][] = [200, 400, 600, 800];
/** So many turns are a whole number of sessions of each size. */
const ROUNDS = { rounds: 150, warmUp: 15, turns: 2_400 };
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

/** With which the mesh starts the process that builds. */
const FLAGS = nodeFlagsOf('reconstructor');

/** What another process like that says. */
const inProcess = (...args: string[]): string =>
  execFileSync(process.execPath, [...FLAGS, import.meta.filename, ...args], { encoding: 'utf8' });

const firstsOf = (turns: number): number =>
  medianOf(Array.from({ length: FIRST_BUILDS }, () => Number(inProcess('--first', String(turns)))));

interface Row {
  readonly turns: number;
  readonly timeMs: number;
  readonly cpuMs: number;
  /** As many times what a session of half the turns takes in the same round; unset where that was not measured. */
  readonly times?: { readonly build: Interval; readonly cpu: Interval };
}

function rowOf(built: Built, all: readonly Built[]): Row {
  const { turns, timesMs, cpuMs } = built;
  const row = { turns, timeMs: medianOf(timesMs), cpuMs: medianOf(cpuMs) };
  const half = all.find((one) => one.turns === turns / 2);
  if (half === undefined) return row;
  const ratios = (of: 'timesMs' | 'cpuMs'): Interval =>
    medianWithin(built[of].map((ms, round) => ms / (half[of][round] as number)));
  return { ...row, times: { build: ratios('timesMs'), cpu: ratios('cpuMs') } };
}

const ms = (value: number): string => value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0);
const within = (interval: Interval | undefined): string =>
  interval === undefined
    ? '–'
    : `${interval.median.toFixed(2)} (${interval.low.toFixed(2)}–${interval.high.toFixed(2)})`;

function table(rows: readonly Row[]): string {
  const lines = rows.map(
    ({ turns, timeMs, cpuMs, times }) =>
      `| ${turns} | ${(turns * TURN_TOKENS).toLocaleString('en')} | ${ms(firstsOf(turns))} | ${ms(timeMs)} | ${ms(cpuMs)} | ${within(times?.build)} | ${within(times?.cpu)} |`,
  );
  const [least, most] = [rows[0] as Row, rows.at(-1) as Row];
  return [
    `${cpus()[0]?.model.trim() ?? ''}, ${cpus().length} cores, Node.js ${process.version}; ${new Date().toISOString().slice(0, 10)}. Goal: ${GOAL_TURNS} turns in ${GOAL_MS} ms, and at most twice as long for twice the turns.`,
    '',
    '| turns | ids | first build, ms | build, ms | CPU, ms | times half the turns: build | CPU |',
    '|--:|--:|--:|--:|--:|--:|--:|',
    ...lines,
    '',
    `From ${least.turns} to ${most.turns} turns, ${most.turns / least.turns} times as many, a build takes ${(most.timeMs / least.timeMs).toFixed(1)} times as long.`,
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
else if (values.sizes) {
  const all = measure(SIZES, ROUNDS);
  say(JSON.stringify(all.map((built) => rowOf(built, all))));
} else {
  const rows = JSON.parse(inProcess('--sizes')) as Row[];
  const text = table(rows);
  say(text);
  if (values.write) {
    writePart(join(DOCS, 'benchmarks.md'), 'builder', text);
    writeFileSync(join(DOCS, 'benchmarks-builder.svg'), draw(rows));
  }
}
