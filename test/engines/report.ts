// The parts of docs/engines.md that a run writes, one for each engine that it ran.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Figures, figuresOf } from './figures.ts';
import type { RealEngine } from './kinds/engine.ts';
import { type Mode, modesOf } from './site.ts';

const FILE = join(import.meta.dirname, '../../docs/engines.md');
const END = '<!-- end -->';

export function writeReport(engines: readonly RealEngine[]): void {
  let text = readFileSync(FILE, 'utf8');
  for (const engine of engines) text = withPart(text, engine.kind, tableOf(engine, figuresOf(engine.title)));
  writeFileSync(FILE, text);
}

function withPart(text: string, name: string, part: string): string {
  const mark = `<!-- engine: ${name} -->`;
  const from = text.indexOf(mark);
  const to = text.indexOf(END, from);
  if (from < 0 || to < 0) throw new Error(`${FILE} has lost its marks of ${name}`);
  return `${text.slice(0, from + mark.length)}\n\n${part}\n\n${text.slice(to)}`;
}

function tableOf(engine: RealEngine, figures: Figures): string {
  const today = new Date().toISOString().slice(0, 10);
  const rows: readonly (readonly [string, string])[] = [
    ['packages', engine.source],
    ['model', engine.model],
    ['last run', `${today}: ${figures.problem?.split('\n')[0]?.replaceAll('|', '/') ?? resultOf(figures)}`],
    ['start to ready', `${figures.startSeconds} s`],
    ['calls whose ids equal those of asking the engine directly', String(figures.callsCompared)],
    ['sampled ids whose logprobs were scored again', String(figures.idsRescored)],
    [`largest difference of a logprob (${LOGPROBS[engine.logprobMode]})`, differenceOf(engine, figures)],
    ['harness leaves, to nothing left to do at the engine', `${figures.abortMs} ms`],
    ...modesOf(engine).map((mode) => [DRIFT[mode], driftOf(figures, mode)] as const),
  ];
  const lines = rows.map(([what, value]) => `| ${what} | ${value} |`);
  return [`| ${engine.title} | |`, '|---|---|', ...lines, '', ...auditTable(figures)].join('\n');
}

/** Of `polar audit --rescore`, one row a mode. */
function auditTable({ audits }: Figures): string[] {
  const head = ['audit', 'sampled', "engine's count", 'trained', 'scored again', 'mean', 'p99', 'max'];
  const rows = Object.entries(audits).map(([mode, one]) => [
    ...[`${mode} mode`, one.sampled, one.engine_usage, one.trained, one.ids].map(String),
    ...[one.mean, one.p99, one.max].map((value) => value.toExponential(1)),
  ]);
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
}

const LOGPROBS = { raw: 'raw', processed: 'after bias and temperature' } as const;

const DRIFT = {
  text: 'turns that drift, text mode',
  token: 'turns that drift, token mode',
  'token, local': 'turns that drift, token mode rendered by the proxy',
} as const satisfies Record<Mode, string>;

const resultOf = ({ passed, failed }: Figures): string => `${passed} passed, ${failed} failed`;

const differenceOf = ({ tolerance }: RealEngine, { logprobError }: Figures): string =>
  `${logprobError.toExponential(1)}; tolerance ${tolerance.toExponential(0)}`;

function driftOf({ drift }: Figures, mode: Mode): string {
  const found = drift[mode];
  return found === undefined ? 'not run' : `${found.drifted} of ${found.turns}`;
}
