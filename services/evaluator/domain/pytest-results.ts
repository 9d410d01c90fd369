// Results as pytest prints them: lines that begin with PASSED, FAILED, ERROR or SKIPPED.
import { normaliseName } from '../../common/specs/test-names.ts';
import { withoutReports } from './pytest-reports.ts';
import { type Expected, stripAnsi, type TestRun } from './test-results.ts';

// To its end, whatever is in it: `.` stops at a carriage return, and at what else JavaScript takes for the end of a line.
const LINE = /^(PASSED|FAILED|ERROR|SKIPPED)[ \t]+(\S.*)$/s;
/** pytest, of a sub-test: what it is called, and its test. Of that one it may say PASSED. */
const SUB_FAILED = /^(?:SUBFAILED.*?[\])] |[[(].*? SUBFAIL )((?:[^\s[\]()='"]+ )*\S*::\S.*)$/s;

/**
 * Where a whole name comes twice, the last one counts, as a summary comes last. A test with a sub-test that failed has
 * failed. What tests have printed themselves is no result where pytest's summary stands behind it.
 */
export function readPytest(output: string, expected: Expected): TestRun[] {
  const known = namesOf(expected);
  const printed = new Map<string, string>();
  const failed = new Set<string>();
  for (const line of withoutReports(stripAnsi(output).split(/\r?\n/))) {
    const [, status, rest] = LINE.exec(line) ?? [];
    if (status !== undefined && rest !== undefined) printed.set(nameIn(rest, known), status);
    const [, test] = SUB_FAILED.exec(line) ?? [];
    if (test !== undefined) failed.add(nameIn(test, known));
  }
  return [...printed, ...[...failed].map((name) => [name, 'FAILED'] as const)];
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
