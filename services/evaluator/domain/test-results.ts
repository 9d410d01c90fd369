// Results of tests by name: what was printed of them, and what was expected.

/** One result that a test command printed; a name may come several times. */
export type TestRun = readonly [name: string, status: string];
export type TestResults = ReadonlyMap<string, string>;
/** Results by name, as a task says them. */
export type Expected = Readonly<Record<string, string>>;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const ANSI = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\-~])/g;

export const stripAnsi = (text: string): string => text.replaceAll(ANSI, '');

/** Without their colours. */
export const linesOf = (text: string): string[] => stripAnsi(text).split(/\r?\n/);

const WORST_FIRST = ['ERROR', 'FAILED', 'SKIPPED', 'PASSED'];

/** The worst result of each name, so that none hides another. */
export function worstByName(runs: Iterable<TestRun>, nameOf: (name: string) => string): TestResults {
  const results = new Map<string, string>();
  for (const [whole, status] of runs) {
    const name = nameOf(whole);
    const alike = [status, results.get(name)];
    results.set(name, WORST_FIRST.find((one) => alike.includes(one)) ?? status);
  }
  return results;
}

/** True when something was parsed and it is exactly what was wanted, name by name. */
export function sameResults(parsed: TestResults, wanted: TestResults): boolean {
  return parsed.size === wanted.size && hasResults(parsed, wanted);
}

/** True when something was wanted, and each of it was parsed with its result, whatever else was. */
export function hasResults(parsed: TestResults, wanted: TestResults): boolean {
  return wanted.size > 0 && [...wanted].every(([name, status]) => parsed.get(name) === status);
}
