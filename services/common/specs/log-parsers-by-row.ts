// Parsers of SWE-bench that are another for each row of their repository, as its logs are: after swebench 5.0.2.
import type { LogParser } from './catalogue.ts';

export const PARSERS_BY_ROW = [
  'parse_log_jekyll',
  'parse_log_immutable_js',
  'parse_log_next',
  'parse_log_lighthouse',
] as const;
export type ParserByRow = (typeof PARSERS_BY_ROW)[number];

export interface RowColumns {
  readonly instance_id: string;
  readonly version?: unknown;
}

type Column = keyof RowColumns;
interface Rule {
  readonly column: Column;
  readonly parserOf: (value: string) => LogParser | undefined;
}

/** By the number of its pull request. */
const JEKYLL: Readonly<Record<string, LogParser>> = {
  '8047': 'parse_log_minitest',
  '8167': 'parse_log_minitest',
  '9141': 'parse_log_minitest',
  '8761': 'parse_log_cucumber',
  '8771': 'parse_log_cucumber',
};
const IMMUTABLE: Readonly<Record<string, LogParser>> = {
  '2005': 'parse_log_jest_json',
  '2006': 'parse_log_jest',
};
const LIGHTHOUSE_MOCHA = ['9.5', '10.0', '10.2'];
const LIGHTHOUSE_JEST_MIN = 3;
const DECIMAL = /^\d+(?:\.\d+)?$/;

const own = (parsers: Readonly<Record<string, LogParser>>, key: string): LogParser | undefined =>
  Object.hasOwn(parsers, key) ? parsers[key] : undefined;

const RULES: Readonly<Record<ParserByRow, Rule>> = {
  parse_log_jekyll: { column: 'instance_id', parserOf: (id) => own(JEKYLL, id.split('-')[1] ?? '') },
  parse_log_immutable_js: {
    column: 'instance_id',
    parserOf: (id) => own(IMMUTABLE, id.split('-').at(-1) ?? ''),
  },
  parse_log_next: {
    column: 'version',
    parserOf: (version) => (version === '1.27' ? 'parse_log_next_v2' : 'parse_log_next_v1'),
  },
  parse_log_lighthouse: { column: 'version', parserOf: lighthouse },
};

function lighthouse(version: string): LogParser | undefined {
  if (LIGHTHOUSE_MOCHA.includes(version)) return 'parse_log_lighthouse_mocha';
  if (!DECIMAL.test(version)) return undefined;
  return Number(version) >= LIGHTHOUSE_JEST_MIN ? 'parse_log_carbon' : 'parse_log_lighthouse_json';
}

/** The parser that a row chooses; undefined where none is known for the column that does. */
export function parserByRow(named: LogParser | ParserByRow, row: RowColumns): LogParser | undefined {
  if (!isByRow(named)) return named;
  const { column, parserOf } = RULES[named];
  const value = row[column];
  return parserOf(typeof value === 'string' ? value : '');
}

/** What chooses it. */
export const columnOf = (named: string): Column => (isByRow(named) ? RULES[named].column : 'instance_id');

const isByRow = (named: string): named is ParserByRow => PARSERS_BY_ROW.some((one) => one === named);
