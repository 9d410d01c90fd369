// The tables of docs/benchmarks.md: medians over rounds, what is added to the engine alone, ratios to peers.
import { readFileSync, writeFileSync } from 'node:fs';
import { medianOf } from './statistics.ts';

/** One measurement of one candidate in one round. */
export interface Result {
  readonly round: number;
  readonly candidate: string;
  readonly cell: string;
  readonly figures: Readonly<Record<string, number>>;
  /** CPU that the rest of the machine used meanwhile, in cores. */
  readonly foreign: number;
}

/** Above it a sample counts only where a cell has none below. */
const FOREIGN_QUIET = 0.15;
const OURS = 'polar';

class Results {
  readonly #all: readonly Result[];

  constructor(all: readonly Result[]) {
    this.#all = all;
  }

  get candidates(): string[] {
    return [...new Set(this.#all.map(({ candidate }) => candidate))];
  }

  /** The median of a figure, from quiet samples where there are any. */
  of(candidate: string, cell: string, figure: string): number {
    const samples = this.#all.filter((one) => one.candidate === candidate && one.cell === cell);
    const quiet = samples.filter(({ foreign }) => foreign < FOREIGN_QUIET);
    return medianOf((quiet.length > 0 ? quiet : samples).map(({ figures }) => figures[figure] ?? NaN));
  }

  /** What a candidate adds to the engine alone. */
  added(candidate: string, cell: string, figure: string): number {
    return this.of(candidate, cell, figure) - this.of('direct', cell, figure);
  }

  /** How often a figure of ours goes into that of another. */
  ratio(candidate: string, cell: string, figure: string): number {
    return this.of(candidate, cell, figure) / this.of(OURS, cell, figure);
  }

  quietShare(): string {
    const quiet = this.#all.filter(({ foreign }) => foreign < FOREIGN_QUIET).length;
    return `${quiet} of ${this.#all.length}`;
  }

  foreign(): number {
    return medianOf(this.#all.map(({ foreign }) => foreign));
  }
}

const shown = (value: number, digits = 2): string =>
  Number.isNaN(value) ? '–' : value.toFixed(Math.abs(value) >= 100 ? 0 : digits);

type Column = readonly [title: string, value: (candidate: string, results: Results) => string];

const figure =
  (cell: string, name: string, digits?: number) =>
  (candidate: string, results: Results): string =>
    shown(results.of(candidate, cell, name), digits);
const added =
  (cell: string, name: string) =>
  (candidate: string, results: Results): string =>
    candidate === 'direct' ? '0' : shown(results.added(candidate, cell, name));
const cost =
  (cell: string, digits = 3) =>
  (candidate: string, results: Results): string =>
    candidate === 'direct' ? '–' : shown(results.of(candidate, cell, 'cpu'), digits);

const SMALL: readonly Column[] = [
  ['+p50 c1 ms', added('c1', 'p50')],
  ['+p99 c1', added('c1', 'p99')],
  ['+p50 c16', added('c16', 'p50')],
  ['+p99 c16', added('c16', 'p99')],
  ['calls/s c64', figure('c64', 'perS', 0)],
  ['CPU-s/1000 c1', cost('c1')],
  ['c16', cost('c16')],
  ['c64', cost('c64')],
];
const LATE: readonly Column[] = [
  ['+p50 ms', added('late', 'p50')],
  ['+p99', added('late', 'p99')],
  ['CPU-s/1000', cost('late', 2)],
  ['others +p50', added('beside', 'p50')],
  ['others +p99', added('beside', 'p99')],
];
const STREAMS: readonly Column[] = [
  ['first chunk p50 ms', figure('slow500', 'first50', 0)],
  ['p99', figure('slow500', 'first99', 0)],
  ['chunk delay p50', figure('slow500', 'delay50')],
  ['p99', figure('slow500', 'delay99')],
  ['CPU-s/1M chunks', cost('slow500', 1)],
  ['whole of 500', figure('slow500', 'complete', 0)],
  ['1,000 open: whole', figure('open1000', 'complete', 0)],
  ['errors', figure('open1000', 'errors', 0)],
  ['resident MiB', figure('open1000', 'resident', 0)],
];

function table(results: Results, columns: readonly Column[]): string {
  const rows = results.candidates.map((name) => [
    name === OURS ? `**${name}**` : name,
    ...columns.map(([, value]) => value(name, results)),
  ]);
  const head = ['', ...columns.map(([title]) => title)];
  const lines = [head, head.map((_, i) => (i === 0 ? '---' : '--:')), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

interface Goal {
  readonly what: string;
  readonly limit: number;
  readonly atLeast?: boolean;
  readonly value: (results: Results) => number;
}

const ours = (cell: string, name: string) => (results: Results) => results.of(OURS, cell, name);
const oursAdded = (cell: string, name: string) => (results: Results) => results.added(OURS, cell, name);

const GOALS: readonly Goal[] = [
  { what: 'small calls, CPU-s per 1,000 (c64)', limit: 0.2, value: ours('c64', 'cpu') },
  {
    what: 'the same, times the bare pass-through',
    limit: 4,
    value: (r) => 1 / r.ratio('node-http', 'c64', 'cpu'),
  },
  {
    what: 'calls per CPU-second, times FastAPI + httpx',
    limit: 10,
    atLeast: true,
    value: (r) => r.ratio('fastapi-httpx', 'c64', 'cpu'),
  },
  {
    what: 'the same, times LiteLLM',
    limit: 60,
    atLeast: true,
    value: (r) => r.ratio('litellm', 'c64', 'cpu'),
  },
  { what: 'added one at a time, p50 ms', limit: 0.6, value: oursAdded('c1', 'p50') },
  { what: 'added one at a time, p99 ms', limit: 3, value: oursAdded('c1', 'p99') },
  { what: '1.5 MB late turn, added p50 ms', limit: 4, value: oursAdded('late', 'p50') },
  { what: '1.5 MB late turn, CPU-s per 1,000', limit: 4, value: ours('late', 'cpu') },
  { what: 'others while such run, added p99 ms', limit: 20, value: oursAdded('beside', 'p99') },
  { what: '500 slow streams, chunk delay p99 ms', limit: 20, value: ours('slow500', 'delay99') },
  { what: '500 slow streams, CPU-s per million chunks', limit: 40, value: ours('slow500', 'cpu') },
  { what: '1,000 open streams, errors', limit: 0, value: ours('open1000', 'errors') },
  {
    what: '1,000 open streams, resident MB',
    limit: 400,
    value: (r) => ours('open1000', 'resident')(r) * 1.048576,
  },
];

function goals(results: Results): string {
  const rows = GOALS.map(({ what, limit, atLeast, value }) => {
    const found = value(results);
    const met = atLeast ? found >= limit : found <= limit;
    const verdict = Number.isNaN(found) ? 'not measured' : met ? 'yes' : '**no**';
    return `| ${what} | ${atLeast ? '≥' : '≤'} ${limit} | ${shown(found)} | ${verdict} |`;
  });
  return ['| what | goal | measured | met |', '|---|--:|--:|---|', ...rows].join('\n');
}

/** The part on cost, as markdown. */
export function costReport(all: readonly Result[], about: readonly string[]): string {
  const results = new Results(all);
  const noise = `Samples while the rest of the machine used less than ${FOREIGN_QUIET * 100} % of a core: ${results.quietShare()}; median use by others: ${(results.foreign() * 100).toFixed(0)} % of a core.`;
  return [
    [...about, noise].join(' '),
    goals(results),
    'Small calls, 2 KB in and 22 KB out; `+` is what is added to the engine alone:',
    table(results, SMALL),
    '1.5 MB requests, the late turns of a growing session, one at a time; others: small calls at 100 a second meanwhile:',
    table(results, LATE),
    '500 streams of a chunk each 20 ms; 1,000 open streams of a chunk each second:',
    table(results, STREAMS),
  ].join('\n\n');
}

/** Put a part into a document, between its markers. */
export function writePart(path: string, name: string, text: string): void {
  const [begin, end] = [`<!-- begin: ${name} -->`, `<!-- end: ${name} -->`];
  const document = readFileSync(path, 'utf8');
  const [before, rest] = [document.indexOf(begin), document.indexOf(end)];
  if (before < 0 || rest < before) throw new Error(`${path} has no markers of part ${name}`);
  if (document.includes(begin, before + 1)) throw new Error(`${path} has part ${name} twice`);
  writeFileSync(path, `${document.slice(0, before + begin.length)}\n\n${text}\n\n${document.slice(rest)}`);
}
