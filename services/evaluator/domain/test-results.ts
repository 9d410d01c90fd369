// Test results as test programs print them: lines that begin with PASSED, FAILED, ERROR or SKIPPED.

export type TestResults = ReadonlyMap<string, string>;

const LINE = /^(PASSED|FAILED|ERROR|SKIPPED)[ \t]+(\S.*)$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const ANSI = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/g;

export const stripAnsi = (text: string): string => text.replaceAll(ANSI, '');

/** Results by normalised name; where a name comes twice, the last one counts, as a summary comes last. */
export function parseResults(output: string): Map<string, string> {
  const results = new Map<string, string>();
  for (const line of stripAnsi(output).split(/\r?\n/)) {
    const [, status, rest] = LINE.exec(line) ?? [];
    if (status !== undefined && rest !== undefined) results.set(normaliseName(withoutReason(rest)), status);
  }
  return results;
}

/**
 * The name without its file, so that it is the same wherever the tests lie: of `path::Class::test` the last two parts,
 * joined by a dot; of `path::test` the last one.
 */
export function normaliseName(name: string): string {
  const bracket = name.indexOf('[');
  // Parameters may hold `::` themselves.
  const [stem, parameters] = bracket < 0 ? [name, ''] : [name.slice(0, bracket), name.slice(bracket)];
  const parts = stem.split('::');
  const named = parts.length > 2 ? parts.slice(-2).join('.') : (parts.at(-1) as string);
  return (named + parameters).trim();
}

/** pytest writes `name - reason`; parameters in brackets may hold ` - ` themselves. */
function withoutReason(text: string): string {
  const dash = text.indexOf(' - ');
  const bracket = text.indexOf('[');
  if (dash < 0) return text.trim();
  if (bracket < 0 || dash < bracket) return text.slice(0, dash).trim();
  const close = text.indexOf('] - ', bracket);
  return (close < 0 ? text : text.slice(0, close + 1)).trim();
}

/** What was expected, by normalised name. */
export const byName = (expected: Readonly<Record<string, string>>): TestResults =>
  new Map(Object.entries(expected).map(([name, status]) => [normaliseName(name), status]));

/** True when something was parsed and it is exactly what was expected, name by name. */
export function sameResults(parsed: TestResults, expected: Readonly<Record<string, string>>): boolean {
  const wanted = byName(expected);
  if (parsed.size === 0 || parsed.size !== wanted.size) return false;
  return [...wanted].every(([name, status]) => parsed.get(name) === status);
}
