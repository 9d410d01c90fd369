// Results of `python -m unittest -v` and of Django's `test --verbosity 2`: `test_a (module.Class.test_a) ... ok`.
import { linesOf, type TestRun } from './test-results.ts';

/** Or which sub-test of it. */
const STARTED = /(?: {2})?(\S+ \([\w.<>]+\))(?: \.\.\. |( [[(]))/y;
/** Its docstring follows. */
const ALONE = /(?: {2})?\S+ \([\w.<>]+\)$/y;
const ENDED = /(?:(ok|FAIL|ERROR|expected failure|unexpected success)$|(skipped) ['"])/y;
const DOCUMENTED = /^(.*) \.\.\. (?:(ok|FAIL|ERROR|expected failure|unexpected success)$|(skipped) ['"])/s;
const HEADING = /^(FAIL|ERROR|UNEXPECTED SUCCESS): (.+)$/s;
const TEST_OF_SUB_TEST = /^(\S+ \([\w.<>]+\)) .*$/s;
const RULE = /^[=-]{70}$/;
const SUMMARY = /^Ran \d+ tests? in /;

const STATUS = new Map([
  ['ok', 'PASSED'],
  ['FAIL', 'FAILED'],
  ['ERROR', 'ERROR'],
  ['UNEXPECTED SUCCESS', 'FAILED'],
  ['unexpected success', 'FAILED'],
  ['expected failure', 'SKIPPED'],
  ['skipped', 'SKIPPED'],
]);

class Reader {
  readonly runs: TestRun[] = [];
  readonly #open = new Set<string>();
  /** Something was told that no summary stands behind. */
  #isRunning = false;
  /** In the order in which they began; some have ended. */
  readonly #begun: string[] = [];
  #isAlone = false;

  line(line: string, before: string, after: string): void {
    if (SUMMARY.test(line)) this.#isRunning = false;
    const isDocumented = this.#isAlone;
    this.#isAlone = false;
    const [, title, name] = RULE.test(before) ? (HEADING.exec(line) ?? []) : [];
    if (title !== undefined && name !== undefined) {
      const isNamed = after !== '' && !RULE.test(after);
      this.#end(isNamed ? after : name.replace(TEST_OF_SUB_TEST, '$1'), title);
    } else if (isDocumented && line.includes(DOTS)) this.#documented(line);
    else this.#tests(line);
  }

  /** Tests that have begun, and whose result is not told, are an ERROR; so is a run of tests without a summary. */
  ended(): TestRun[] {
    const open = [...this.#open, ...(this.#isRunning ? ['Ran ? tests'] : [])];
    return [...this.runs, ...open.map((name): TestRun => [name, 'ERROR'])];
  }

  /** Where a test has sub-tests that failed, Python before 3.11 goes on with the next one in the same line. */
  #tests(line: string): void {
    let at = 0;
    for (let found = matchAt(STARTED, line, at); found !== null; found = matchAt(STARTED, line, at)) {
      const [whole, name = '', subTest] = found;
      if (subTest !== undefined) {
        this.#subTest(name, line);
        return;
      }
      at += whole.length;
      this.#start(name);
    }
    const [, status, skipped] = matchAt(ENDED, line, at) ?? [];
    const said = status ?? skipped;
    // In a line of its own where the test has written to the same output: of the last one that has not ended.
    const current = said === undefined ? undefined : this.#latest();
    if (said !== undefined && current !== undefined) this.#end(current, said);
    this.#isAlone = matchAt(ALONE, line, at) !== null;
  }

  /** Told only where it has failed or was skipped; the result of its test is not told then. */
  #subTest(name: string, line: string): void {
    const [, , status, skipped] = DOCUMENTED.exec(line) ?? [];
    const said = status ?? skipped;
    if (said !== undefined) this.#end(name, said);
  }

  /** The first line of a docstring stands for the test. */
  #documented(line: string): void {
    const [, name, status, skipped] = DOCUMENTED.exec(line) ?? [];
    if (name === undefined) this.#start(line.slice(0, line.indexOf(DOTS)));
    else this.#end(name, status ?? skipped ?? '');
  }

  #start(name: string): void {
    this.#isRunning = true;
    this.#open.add(name);
    this.#begun.push(name);
  }

  /** Of those that have not ended. */
  #latest(): string | undefined {
    for (let name = this.#begun.pop(); name !== undefined; name = this.#begun.pop()) {
      if (this.#open.has(name)) return name;
    }
    return undefined;
  }

  #end(name: string, status: string): void {
    this.#isRunning = true;
    this.#open.delete(name);
    this.runs.push([name, STATUS.get(status) ?? 'ERROR']);
  }
}

const DOTS = ' ... ';

export function readUnittest(output: string): TestRun[] {
  const reader = new Reader();
  const lines = linesOf(output);
  for (const [index, line] of lines.entries()) {
    reader.line(line, lines[index - 1] ?? '', lines[index + 1] ?? '');
  }
  return reader.ended();
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
