// What `npm run bench:stream` says in docs/benchmarks.md.
import { medianOf } from '../proxy/statistics.ts';
import type { Consumed, Sample } from './consume.ts';
import type { Shape } from './traces.ts';

/** Of the issue: M tokens/s by the length of a trace. */
const RATE_GOALS: Readonly<Record<number, number>> = { 16384: 20, 1024: 5 };
const RATIO_GOAL = 20;

/** How batches hold their traces. */
const LAYOUTS = ['columns', 'traces'] as const;
type Layout = (typeof LAYOUTS)[number];
const NAMES: Readonly<Record<Layout, string>> = { columns: 'in columns', traces: 'trace by trace' };

/** The stream in either layout and its peers, one after another. */
export interface Round {
  readonly stream: Readonly<Record<Layout, Consumed>>;
  readonly peers: Readonly<Record<string, Consumed>>;
}

export interface Measured {
  readonly shape: Shape;
  readonly rounds: readonly Round[];
}

const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map((_, i) => (i === 0 ? '---' : '--:'))), ...rows.map(row)].join('\n');

const rateOf = ({ tokens, seconds }: Consumed): number => tokens / seconds / 1e6;
const verdict = (isMet: boolean): string => (isMet ? 'yes' : '**no**');

/** CPU in ns a token: of these processes, or of all. */
function costOf({ tokens, cpuMs }: Consumed, processes: readonly string[] = Object.keys(cpuMs)): number {
  return (processes.reduce((sum, name) => sum + (cpuMs[name] ?? 0), 0) * 1e6) / tokens;
}

/** Server and consumer, as a peer has them; the peers have no store behind them. */
const PAIR = ['reconstructor', 'consumer'];

export function rateTable(all: readonly Measured[]): string {
  const rows = all.flatMap(({ shape, rounds }) =>
    LAYOUTS.map((layout) => {
      const of = (value: (one: Consumed) => number): number =>
        medianOf(rounds.map(({ stream }) => value(stream[layout])));
      const goal = RATE_GOALS[shape.tokens] ?? 0;
      const share = (name: string): string =>
        of(({ cpuMs, seconds }) => (cpuMs[name] ?? 0) / 1e3 / seconds).toFixed(2);
      const rate = of(rateOf);
      const cores = ['reconstructor', 'nats', 'consumer'].map(share);
      return [
        `${shape.tokens}: ${NAMES[layout]}`,
        `${goal}`,
        `**${rate.toFixed(1)}**`,
        verdict(rate >= goal),
        ...cores,
      ];
    }),
  );
  return table(
    [
      'tokens a trace',
      'goal, M tokens/s',
      'measured',
      'met',
      'cores: reconstructor',
      'nats-server',
      'consumer',
    ],
    rows,
  );
}

/** Medians of the rounds, of ratios too: what else the machine does falls on both sides of one. */
export function costTable(all: readonly Measured[]): string {
  const rows = all.flatMap(({ shape, rounds }) => {
    const of = (value: (round: Round) => number, digits = 0): string => {
      const values = rounds.map(value).sort((one, other) => one - other);
      const range =
        values.length > 1 ? ` (${values[0]?.toFixed(digits)}–${values.at(-1)?.toFixed(digits)})` : '';
      return `${medianOf(values).toFixed(digits)}${range}`;
    };
    const peer = (name: string, { peers }: Round): number => costOf(peers[name] as Consumed);
    const times = (name: string, layout: Layout, processes?: readonly string[]): string =>
      of((round) => peer(name, round) / costOf(round.stream[layout], processes), 1);
    return [
      ...LAYOUTS.flatMap((layout) => [
        [`${shape.tokens}: ${NAMES[layout]}`, of(({ stream }) => costOf(stream[layout], PAIR)), '', '', ''],
        [
          `${shape.tokens}: the same with nats-server`,
          of(({ stream }) => costOf(stream[layout])),
          '',
          '',
          '',
        ],
      ]),
      ...Object.keys(rounds[0]?.peers ?? {}).map((name) => [
        `${shape.tokens}: JSON from ${name}`,
        of((round) => peer(name, round)),
        `**${times(name, 'columns', PAIR)}**`,
        times(name, 'columns'),
        times(name, 'traces', PAIR),
      ]),
    ];
  });
  return table(
    [
      'tokens a trace: how',
      'CPU ns a token, server and consumer',
      `times the stream in columns (goal ${RATIO_GOAL})`,
      'times it with nats-server',
      'times it trace by trace',
    ],
    rows,
  );
}

/** Resident memory at a tenth, at half and at the end of a long run. */
export function memoryTable(samples: readonly Sample[]): string {
  const at = (part: number): Sample | undefined => samples[Math.ceil((samples.length - 1) * part)];
  const rows = [0.1, 0.25, 0.5, 0.75, 1].flatMap((part) => {
    const sample = at(part);
    if (sample === undefined) return [];
    const mib = (name: string): string => (sample.residentMiB[name] ?? 0).toFixed(0);
    return [[`${(sample.tokens / 1e9).toFixed(2)} G`, mib('reconstructor'), mib('nats'), mib('consumer')]];
  });
  return table(['tokens so far', 'resident MiB: reconstructor', 'nats-server', 'consumer'], rows);
}
