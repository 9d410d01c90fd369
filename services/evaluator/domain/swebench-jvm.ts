// Logs of Java repositories as SWE-bench reads them.
import { byLine, fromTheEnd, type Heads, headOf, NOT_SPACE } from './swebench-scan.ts';
import { isSpace, type Statuses, stripped, stripStart, wordsOf } from './swebench-words.ts';

const TEST = '-Dtest=';
const WORD = new RegExp(`${NOT_SPACE}+`, 'y');

/**
 * Maven does not name what passes: each test is a command of its own, which the shell's trace tells, and ends with `BUILD SUCCESS` or
 * `BUILD FAILURE`. The first command that has no end gets the next one.
 */
export function readMavenLog(log: string): Statuses {
  const tests: string[] = [];
  const early: string[] = [];
  const ends: string[] = [];
  for (const line of log.split('\n').map(stripped)) {
    const test = testIn(line);
    if (test !== undefined) tests.push(test);
    const status = ['SUCCESS', 'FAILURE'].find((one) => line.endsWith(`BUILD ${one}`));
    if (status !== undefined) (ends.length < tests.length ? ends : early).push(status);
  }
  const all = [...ends, ...early];
  const told = tests.slice(0, all.length);
  return new Map(told.map((test, index) => [test, all[index] === 'SUCCESS' ? 'PASSED' : 'FAILED']));
}

function testIn(line: string): string | undefined {
  for (const at of fromTheEnd(line, TEST)) {
    WORD.lastIndex = at + TEST.length;
    const [word] = WORD.exec(line) ?? [];
    if (word !== undefined) return word;
  }
  return undefined;
}

const ANT: Heads = [
  ['[PASS]', 'PASSED'],
  ['[FAIL]', 'FAILED'],
  ['[ERR]', 'FAILED'],
];
const JUNIT = '[junit]';

/** `[junit] [PASS] name`, as the repository's own tests print it. */
export const readAntLog = byLine((line) => {
  if (!line.startsWith(JUNIT) || !isSpace(line.charAt(JUNIT.length))) return undefined;
  const told = stripStart(line.slice(JUNIT.length));
  const [word, status] = headOf(told, ANT) ?? [];
  if (word === undefined || status === undefined || !isSpace(told.charAt(word.length))) return undefined;
  return [stripStart(told.slice(word.length)), status];
});

/** `Class > test PASSED`, or the result in a line of its own, behind what was printed in between. */
export function readGradleLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  let open: string | undefined;
  for (const line of log.split('\n').map(stripped)) {
    const status = ['PASSED', 'FAILED'].find((one) => line.endsWith(one));
    const name = status === undefined ? undefined : nameBefore(line, line.length - status.length);
    if (status !== undefined && name !== undefined) {
      statuses.set(name, status);
      open = undefined;
    } else if (isName(line)) open = line;
    else if (status === line && open !== undefined) {
      statuses.set(open, status);
      open = undefined;
    }
  }
  return statuses;
}

/** All but the one space before a result. */
function nameBefore(line: string, end: number): string | undefined {
  const name = isSpace(line.charAt(end - 1)) ? line.slice(0, end - 1) : '';
  return name.startsWith('>') || [...name.slice(0, 4)].length < 2 ? undefined : name;
}

function isName(line: string): boolean {
  const [name, sign, test, ...more] = line.includes('>') ? wordsOf(line) : [];
  return sign === '>' && test !== undefined && more.length === 0 && !name?.startsWith('>');
}
