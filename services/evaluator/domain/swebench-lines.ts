// Logs that tell each test in a line of its own, as SWE-bench reads them: of go, cargo, PHPUnit, TAP, Jest and Vitest.
import { JoinedNames } from './swebench-names.ts';
import {
  beforeParentheses,
  byLine,
  DIGIT,
  type Heads,
  headOf,
  isSpaceBeforeText,
  spacesStart,
  WORD,
  withoutDuration,
} from './swebench-scan.ts';
import { isSpace, SPACE, type Statuses, statusesOf, stripped, wordsOf } from './swebench-words.ts';

const GO: Heads = [
  ['--- PASS: ', 'PASSED'],
  ['--- FAIL: ', 'FAILED'],
  ['--- SKIP: ', 'SKIPPED'],
];

/** `--- PASS: TestA (0.00s)`, tests inside of tests, too. */
export const readGoLog = byLine((line) => {
  const [head, status] = headOf(line, GO) ?? [];
  const name = head === undefined ? undefined : beforeParentheses(line.slice(head.length));
  return name === undefined || status === undefined ? undefined : [name, status];
});

/** `test a::b ... ok`; what is ignored is none. */
export const readCargoLog = byLine((line) => {
  const [test, name, dots, outcome, ...more] = line.startsWith('test') ? wordsOf(line) : [];
  if (test !== 'test' || name === undefined || dots !== '...' || more.length > 0) return undefined;
  return outcome === 'ok' ? [name, 'PASSED'] : outcome === 'FAILED' ? [name, 'FAILED'] : undefined;
});

const PHP_SUITE = new RegExp(`^${WORD}[^]`, 'u');
const PHP_TEST = new RegExp(`^${SPACE}*([✔✘↩])${SPACE}*`);
const PHP: Readonly<Record<string, string>> = { '✔': 'PASSED', '✘': 'FAILED', '↩': 'SKIPPED' };

/** PHPUnit's `--testdox`: `Suite (Class)`, and its tests below. */
export function readPhpunitLog(log: string): Statuses {
  const names = new JoinedNames();
  let suite = 'None';
  return statusesOf(log, (line) => {
    const title = beforeParentheses(line);
    if (title !== undefined && PHP_SUITE.test(title)) {
      suite = title;
      return undefined;
    }
    const [head = '', sign = ''] = PHP_TEST.exec(line) ?? [];
    const status = PHP[sign];
    return status === undefined ? undefined : [names.join([suite, line.slice(head.length)], ' > '), status];
  });
}

const TAP = new RegExp(`^(ok|not ok) ${DIGIT}+ (?=[^])`, 'u');

export const readTapLog = byLine((line) => {
  const [head, word] = TAP.exec(line) ?? [];
  return head === undefined ? undefined : [line.slice(head.length), word === 'ok' ? 'PASSED' : 'FAILED'];
});

const JEST: Readonly<Record<string, string>> = { '✓': 'PASSED', '✕': 'FAILED', '○': 'SKIPPED' };

/** Jest's `--verbose`: by the test's own title, so that of tests with the same one in several suites the last one counts. */
export const readJestLog = byLine((line) => {
  const status = JEST[line.charAt(0)];
  if (status === undefined || !isSpaceBeforeText(line, 1)) return undefined;
  return [stripped(withoutDuration(line.slice(2))), status];
});

const JEST_JSON: Heads = [
  ['[PASSED]', 'PASSED'],
  ['[FAILED]', 'FAILED'],
];

/** `[PASSED] suite > test`, as the row's script makes it of Jest's JSON. */
export const readJestJsonLog = byLine((line) => {
  const [head, status] = headOf(line, JEST_JSON) ?? [];
  if (head === undefined || status === undefined || !isSpaceBeforeText(line, head.length)) return undefined;
  return [line.slice(head.length + 1), status];
});

const VITEST: Readonly<Record<string, string>> = { '✓': 'PASSED', '×': 'FAILED', '↓': 'SKIPPED' };

/** Vitest's `--reporter=verbose`. A number at the end of a name is taken for a time. */
export const readVitestLog = byLine((line) => {
  const status = VITEST[line.charAt(0)];
  return status === undefined || !isSpaceBeforeText(line, 1)
    ? undefined
    : [withoutTime(line.slice(2)), status];
});

const SKIPPED = ' [skipped]'.length;
const NUMBER = new RegExp(`^${DIGIT}+$`, 'u');

/** Without ` 12 ms` or ` [skipped]` at its end; a name is never empty. */
function withoutTime(text: string): string {
  const skipped = text.length - SKIPPED;
  if (text.endsWith('[skipped]') && skipped > 0 && isSpace(text.charAt(skipped)))
    return text.slice(0, skipped);
  let end = text.length;
  if (text.endsWith('s')) end--;
  if (text.charAt(end - 1) === 'm') end--;
  if (end < text.length) end = spacesStart(text, end);
  let start = end;
  while (start > 0 && !isSpace(text.charAt(start - 1))) start--;
  return start > 1 && NUMBER.test(text.slice(start, end)) ? text.slice(0, start - 1) : text;
}
