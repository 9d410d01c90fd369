// npm run bench:builder: what a build takes as a session grows, as a table and a chart in docs/benchmarks.md.
//   node test/bench/builder/run.ts [--write]    with --write into the document
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { chart } from '../proxy/chart.ts';
import { writePart } from '../proxy/report.ts';
import { medianOf } from '../proxy/statistics.ts';
import { type Built, measure } from './measure.ts';

const DOCS = join(import.meta.dirname, '../../../docs');
const TURNS = [25, 50, 100, 200, 300, 400, 500, 600, 700, 800] as const;
const SHOWN = [50, 100, 200, 400, 800];
const ROUNDS = 65;
/** Of them, not counted: the compiler is still at work. */
const WARM_UP = 5;
const FIRST_BUILDS = 5;
/** Of 200 turns and 100,000 ids. */
const GOAL_MS = 50;
const GOAL_TURNS = 200;

const { values } = parseArgs({
  options: { one: { type: 'string' }, write: { type: 'boolean', default: false } },
});
const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** First builds, each in a process of its own. */
function firstMs(turns: number): number {
  const one = (): number =>
    Number(
      execFileSync(process.execPath, [import.meta.filename, '--one', String(turns)], { encoding: 'utf8' }),
    );
  return medianOf(Array.from({ length: FIRST_BUILDS }, one));
}

const warmMs = ({ timesMs }: Built): number => medianOf(timesMs.slice(WARM_UP));
const ms = (value: number): string => value.toFixed(value < 10 ? 1 : 0);

function table(built: ReadonlyMap<number, Built>): string {
  const rows = SHOWN.map((turns) => {
    const one = built.get(turns) as Built;
    const half = built.get(turns / 2);
    const grew = half === undefined ? '–' : (one.cpuMs / half.cpuMs).toFixed(2);
    return `| ${turns} | ${one.tokens.toLocaleString('en')} | ${ms(firstMs(turns))} | ${ms(warmMs(one))} | ${ms(one.cpuMs)} | ${grew} |`;
  });
  return [
    `${cpus()[0]?.model.trim() ?? ''}, ${cpus().length} cores, Node.js ${process.version}; ${new Date().toISOString().slice(0, 10)}. Goal: ${GOAL_TURNS} turns in ${GOAL_MS} ms, and at most twice as long for twice the turns.`,
    '',
    '| turns | ids | first build, ms | build, ms | CPU of a build, ms | times that of half the turns |',
    '|--:|--:|--:|--:|--:|--:|',
    ...rows,
    '',
    '![Time of a build by turns](benchmarks-builder.svg)',
  ].join('\n');
}

if (values.one !== undefined) {
  say(String(measure(Number(values.one), 1).timesMs[0]));
} else {
  measure(GOAL_TURNS, ROUNDS, WARM_UP);
  const built = new Map(TURNS.map((turns) => [turns as number, measure(turns, ROUNDS, WARM_UP)]));
  const text = table(built);
  say(text);
  const lines = [
    {
      name: 'CPU of a build, ms',
      values: [0, ...TURNS.filter((t) => t % 100 === 0).map((t) => (built.get(t) as Built).cpuMs)],
      colour: '#c22',
    },
  ];
  if (values.write) {
    writePart(join(DOCS, 'benchmarks.md'), 'builder', text);
    writeFileSync(
      join(DOCS, 'benchmarks-builder.svg'),
      chart(
        [{ title: 'CPU of a build, ms', across: { name: 'turns of 500 ids each', most: 800 }, lines }],
        'Time of a build by turns',
      ),
    );
  }
}
