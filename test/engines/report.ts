// The part of docs/engines.md that a run writes.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Figures, figuresOf } from './figures.ts';
import type { RealEngine } from './kinds/engine.ts';
import type { Mode } from './site.ts';

const FILE = join(import.meta.dirname, '../../docs/engines.md');
const BEGIN = '<!-- written by npm run test:engines -->';
const END = '<!-- end -->';

export function writeReport(engines: readonly RealEngine[]): void {
  const text = readFileSync(FILE, 'utf8');
  const [head, rest] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (head < 0 || rest < head) throw new Error(`${FILE} has lost its marks`);
  const table = tableOf(engines.map((engine) => ({ engine, figures: figuresOf(engine.title) })));
  writeFileSync(FILE, `${text.slice(0, head + BEGIN.length)}\n\n${table}\n\n${text.slice(rest)}`);
}

interface Tested {
  readonly engine: RealEngine;
  readonly figures: Figures;
}

type Row = readonly [what: string, value: (tested: Tested) => string];

const ROWS: readonly Row[] = [
  ['packages', ({ engine }) => engine.source],
  ['model', ({ engine }) => engine.model],
  ['ran', ({ figures }) => (figures.problem === undefined ? 'yes' : `no: ${firstLine(figures.problem)}`)],
  ['start to ready', ({ figures }) => `${figures.startSeconds} s`],
  ['calls whose ids equal those of asking the engine directly', ({ figures }) => `${figures.callsCompared}`],
  ['sampled ids whose logprobs were scored again', ({ figures }) => `${figures.idsRescored}`],
  ['logprobs are', ({ engine }) => LOGPROBS[engine.logprobMode]],
  ['largest difference of a logprob', ({ figures }) => figures.logprobError.toExponential(1)],
  ['tolerance', ({ engine }) => engine.tolerance.toExponential(0)],
  ['harness leaves, to no request at the engine', ({ figures }) => `${figures.abortMs} ms`],
  ['turns that drift: text mode', ({ figures }) => driftOf(figures, 'text')],
  ['token mode, the engine renders', ({ figures }) => driftOf(figures, 'token')],
  ['token mode, the proxy renders', ({ figures }) => driftOf(figures, 'token, local')],
];

const LOGPROBS = { raw: 'raw', processed: 'after temperature' } as const;

function driftOf({ drift }: Figures, mode: Mode): string {
  const found = drift[mode];
  return found === undefined ? '–' : `${found.drifted} of ${found.turns}`;
}

function tableOf(tested: readonly Tested[]): string {
  const head = `| | ${tested.map(({ engine }) => engine.title).join(' | ')} |`;
  const line = `|---|${tested.map(() => '---|').join('')}`;
  const rows = ROWS.map(([what, value]) => `| ${what} | ${tested.map(value).join(' | ')} |`);
  return [head, line, ...rows].join('\n');
}

const firstLine = (text: string): string => text.split('\n')[0]?.replaceAll('|', '/') ?? '';
