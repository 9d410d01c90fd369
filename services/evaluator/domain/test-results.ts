// Test results as test programs print them: lines that begin with PASSED, FAILED, ERROR or SKIPPED.
import { normaliseName } from '../../common/specs/test-names.ts';
import { withoutReports } from './pytest-reports.ts';

export type TestResults = ReadonlyMap<string, string>;

/** Results by name, as a task says them. */
type Expected = Readonly<Record<string, string>>;

// To its end, whatever is in it: `.` stops at a carriage return, and at what else JavaScript takes for the end of a line.
const LINE = /^(PASSED|FAILED|ERROR|SKIPPED)[ \t]+(\S.*)$/s;
/** pytest, of a sub-test: what it is called, and its test. Of that one it may say PASSED. */
const SUB_FAILED = /^(?:SUBFAILED.*?[\])] |[[(].*? SUBFAIL )((?:[^\s[\]()='"]+ )*\S*::\S.*)$/s;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const ANSI = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\-~])/g;

export const stripAnsi = (text: string): string => text.replaceAll(ANSI, '');

const WORST_FIRST = ['ERROR', 'FAILED', 'SKIPPED', 'PASSED'];

/**
 * Results by normalised name. Where a name comes twice, the last one counts, as a summary comes last; where several differ
 * by their file or outer class alone, the worst of them, so that none hides another. A test with a sub-test that failed has
 * failed. What tests have printed themselves is no result where pytest's summary stands behind it.
 */
export function parseResults(output: string, expected: Expected = {}): Map<string, string> {
  const known = namesOf(expected);
  const printed = new Map<string, string>();
  const failed = new Set<string>();
  for (const line of withoutReports(stripAnsi(output).split(/\r?\n/))) {
    const [, status, rest] = LINE.exec(line) ?? [];
    if (status !== undefined && rest !== undefined) printed.set(nameIn(rest, known), status);
    const [, test] = SUB_FAILED.exec(line) ?? [];
    if (test !== undefined) failed.add(nameIn(test, known));
  }
  const results = new Map<string, string>();
  for (const [whole, status] of [...printed, ...[...failed].map((name) => [name, 'FAILED'] as const)]) {
    const name = normaliseName(whole);
    const alike = [status, results.get(name)];
    results.set(name, WORST_FIRST.find((one) => alike.includes(one)) ?? status);
  }
  return results;
}

interface Names {
  readonly normalised: ReadonlySet<string>;
  /** Most parts that one has between ` - `. */
  readonly partsMax: number;
}

function namesOf(expected: Expected): Names {
  const names = Object.keys(expected);
  const partsMax = names.reduce((most, name) => Math.max(most, name.split(DASH).length), 1);
  return { normalised: new Set(names.map(normaliseName)), partsMax };
}

const DASH = ' - ';

/** A name that is expected, the longest one, as it may hold a dash; else what stands before a reason. */
function nameIn(text: string, { normalised, partsMax }: Names): string {
  const parts = text.split(DASH, partsMax);
  for (let count = parts.length; count > 0; count--) {
    const name = parts.slice(0, count).join(DASH).trim();
    if (normalised.has(normaliseName(name))) return name;
  }
  return withoutReason(text);
}

/** pytest writes `name - reason`; parameters in brackets may hold ` - ` themselves. */
function withoutReason(text: string): string {
  const dash = text.indexOf(DASH);
  const bracket = text.indexOf('[');
  if (dash < 0) return text.trim();
  if (bracket < 0 || dash < bracket) return text.slice(0, dash).trim();
  const close = text.indexOf('] - ', bracket);
  return (close < 0 ? text : text.slice(0, close + 1)).trim();
}

/** What was expected, by normalised name. */
export const byName = (expected: Expected): TestResults =>
  new Map(Object.entries(expected).map(([name, status]) => [normaliseName(name), status]));

/** True when something was parsed and it is exactly what was expected, name by name. */
export function sameResults(parsed: TestResults, expected: Expected): boolean {
  const wanted = byName(expected);
  if (parsed.size === 0 || parsed.size !== wanted.size) return false;
  return [...wanted].every(([name, status]) => parsed.get(name) === status);
}
