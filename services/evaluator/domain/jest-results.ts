// Results of `jest --json`, and of Vitest's reporter `json`, which prints the same: a report in one line.
import type { TestRun } from './test-results.ts';

/** What was printed before it may end no line. In a string of another report its quotes would be escaped. */
const REPORTS = /(?=\{"num(?:Failed|Total)TestSuites":)/;
const REPORT = /^\{"num(?:Failed|Total)TestSuites":/;

const STATUS = new Map([
  ['passed', 'PASSED'],
  ['failed', 'FAILED'],
  ['pending', 'SKIPPED'],
  ['skipped', 'SKIPPED'],
  ['disabled', 'SKIPPED'],
  ['todo', 'SKIPPED'],
]);

/** A file that failed without a test of it is an ERROR by its path; so is a report that cannot be read, by its list. */
export function* readJest(output: string): Generator<TestRun> {
  for (const part of output.split(REPORTS).filter((one) => REPORT.test(one))) {
    const files = listIn(parsed(part.split('\n', 1)[0] ?? ''), LIST);
    if (files === undefined) {
      // Nothing that follows could make it right.
      yield [LIST, 'ERROR'];
      return;
    }
    yield* files.flatMap(fileRuns);
  }
}

const LIST = 'testResults';

function fileRuns(file: unknown): TestRun[] {
  const runs = (listIn(file, 'assertionResults') ?? []).map((test): TestRun => {
    const name = textIn(test, 'fullName');
    return name === undefined ? [LIST, 'ERROR'] : [name, STATUS.get(textIn(test, 'status') ?? '') ?? 'ERROR'];
  });
  const isTold = runs.some(([, status]) => status === 'FAILED' || status === 'ERROR');
  const hasEnded = ['passed', 'pending', 'skipped'].includes(textIn(file, 'status') ?? '');
  return hasEnded || isTold ? runs : [...runs, [textIn(file, 'name') ?? LIST, 'ERROR']];
}

const valueIn = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;

function listIn(value: unknown, key: string): unknown[] | undefined {
  const list = valueIn(value, key);
  return Array.isArray(list) ? list : undefined;
}

function textIn(value: unknown, key: string): string | undefined {
  const text = valueIn(value, key);
  return typeof text === 'string' ? text : undefined;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
