// The part of docs/benchmarks.md on growth: a table, and charts beside it.
import { chart } from './chart.ts';
import { type Growth, TURNS_A_READING } from './growth.ts';
import { medianOf } from './statistics.ts';

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
const kib = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KiB`;

/** Where a session is young, and where it is old. */
const YOUNG = [20, 60] as const;
const OLD = [160, 200] as const;
const span = (values: readonly number[], [from, to]: readonly [number, number]): readonly number[] =>
  values.slice(from, to);

/** What each turn has added; read after the first turn and after each TURNS_A_READING. */
const kept = (used: readonly number[], [from, to]: readonly [number, number]): number =>
  ((used[to / TURNS_A_READING] ?? NaN) - (used[from / TURNS_A_READING] ?? NaN)) / (to - from);

function ratios({ cpuMs, parseMs }: Growth): number[] {
  return cpuMs.map((cpu, i) => cpu / (parseMs[i] ?? NaN));
}

export function growthTable(growth: Growth): string {
  const { storedBytes, usedBytes, cpuMs, systemMs, parseMs, passedMs, tokens, inTokenMode } = growth;
  const total = storedBytes.reduce((sum, bytes) => sum + bytes, 0);
  const row = (what: string, of: (range: readonly [number, number]) => string): string =>
    `| ${what} | ${of(YOUNG)} | ${of(OLD)} |`;
  return [
    `| ${storedBytes.length} turns to ${tokens.toLocaleString('en')} tokens, ${inTokenMode} in token mode | turns ${YOUNG[0]}–${YOUNG[1]} | turns ${OLD[0]}–${OLD[1]} |`,
    '|---|--:|--:|',
    row('stored a turn', (range) => kib(mean(span(storedBytes, range)))),
    row('kept in memory a turn', (range) => kib(kept(usedBytes, range))),
    row('CPU of the proxy a turn, ms, median', (range) => medianOf(span(cpuMs, range)).toFixed(2)),
    row('the same, mean: with audits and collections of garbage', (range) =>
      mean(span(cpuMs, range)).toFixed(2),
    ),
    row('of the mean in the kernel', (range) => mean(span(systemMs, range)).toFixed(2)),
    row('CPU of a bare pass-through of the request, ms', (range) =>
      medianOf(span(passedMs, range)).toFixed(2),
    ),
    row('CPU of one JSON.parse of request and reply, ms', (range) =>
      medianOf(span(parseMs, range)).toFixed(2),
    ),
    row('CPU, times JSON.parse', (range) => medianOf(span(ratios(growth), range)).toFixed(2)),
    '',
    `Stored in all: ${kib(total)}, ${(total / (tokens * 4)).toFixed(2)} times the ${kib(tokens * 4)} of the new ids.`,
  ].join('\n');
}

export function soakTable(residentMiB: readonly number[], calls: number): string {
  const [tenth, end] = [residentMiB[1] ?? NaN, residentMiB.at(-1) ?? NaN];
  return [
    `| ${calls.toLocaleString('en')} calls over ${(calls / 100).toLocaleString('en')} sessions | resident MiB |`,
    '|---|--:|',
    `| at 10 % | ${tenth.toFixed(0)} |`,
    `| at the end | ${end.toFixed(0)} |`,
    `| change | ${(((end - tenth) / tenth) * 100).toFixed(0)} % |`,
  ].join('\n');
}

const TURNS = { name: 'turns', most: OLD[1] };

/** Charts of both, as SVG. `calls`: of the soak. */
export function growthChart(growth: Growth, residentMiB: readonly number[], calls: number): string {
  const used = growth.usedBytes.map((bytes) => (bytes - (growth.usedBytes[0] ?? 0)) / 1024);
  return chart([
    {
      title: 'CPU a turn, ms (200 turns to 100,000 tokens, token mode)',
      across: TURNS,
      lines: [
        { name: 'llm-proxy', values: smooth(growth.cpuMs), colour: '#c22' },
        { name: 'bare pass-through', values: smooth(growth.passedMs), colour: '#282' },
        { name: 'one JSON.parse of request and reply', values: smooth(growth.parseMs), colour: '#22c' },
      ],
    },
    {
      title: 'Stored a turn, KiB',
      across: TURNS,
      lines: [{ name: 'record', values: growth.storedBytes.map((bytes) => bytes / 1024), colour: '#c22' }],
    },
    {
      title: 'Kept in memory since the first turn, KiB',
      across: TURNS,
      lines: [{ name: 'heap and buffers after a collection', values: used, colour: '#c22' }],
    },
    {
      title: 'Resident, MiB',
      across: { name: 'calls', most: calls },
      lines: [{ name: 'llm-proxy', values: residentMiB, colour: '#c22' }],
    },
  ]);
}

const WINDOW = 9;
const smooth = (values: readonly number[]): number[] =>
  values.map((_, i) => medianOf(values.slice(Math.max(0, i - WINDOW + 1), i + 1)));
