// Logs of JavaScript's test programs that print suites and their tests below, as SWE-bench reads them.
import { JoinedNames, Suites } from './swebench-names.ts';
import { DIGIT, lastTimingAt, UnreadableLog, withoutAnsi } from './swebench-scan.ts';
import { before, isSpace, SPACE, type Statuses, stripped, stripStart } from './swebench-words.ts';

const JEST_COMMAND = ' ./node_modules/.bin/jest ';
const ENDS_WITH_TIME = new RegExp(`\\(${DIGIT}+ms\\)$`, 'u');
const HAS_TIME = new RegExp(`\\(${DIGIT}+ms\\)`, 'u');

/** Jest's results behind each of its commands, which the shell's trace tells, up to its report of failures. */
export function readCalypsoLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  const names = new JoinedNames();
  const suites = new Suites(names);
  for (const run of log.split(JEST_COMMAND).slice(1)) {
    for (const line of run.split('\n')) {
      if (line.startsWith('Test Suites') || line.startsWith('  ● ')) break;
      const text = stripStart(line);
      const status = text.startsWith('✓') ? 'PASSED' : text.startsWith('✕') ? 'FAILED' : undefined;
      if (status === undefined) suites.enter(line);
      else
        statuses.set(
          stripped(names.join([suites.titles().join(' - '), calypsoTest(line, text)], ' - ')),
          status,
        );
    }
  }
  return statuses;
}

/** swebench stops at a sign that no test's line has: without an indent, without a name, or with a time in its middle. */
function calypsoTest(line: string, text: string): string {
  const hasTime = HAS_TIME.test(line);
  const isTold =
    text.length < line.length && isSpace(text.charAt(1)) && (!hasTime || ENDS_WITH_TIME.test(line));
  if (!isTold) throw new UnreadableLog('a line with the sign of a test is none');
  return hasTime ? text.slice(2, text.lastIndexOf('(')) : text.slice(2);
}

const ASSERTION = new RegExp(`AssertionError:${SPACE}+#`, 'g');
const NEXT_PASSED_OVER = ['ERROR', 'LOG', 'WARN', 'Check', 'in'];

/** Karma's results behind each command with `xvfb-run`, up to their sum. */
export function readNextLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  const suites = new Suites(new JoinedNames());
  for (const run of withoutAssertions(withoutAnsi(log)).split(' xvfb-run ').slice(1)) {
    for (const line of (run.split('Starting browser Chrome').at(-1) ?? '').split('\n')) {
      if (line.startsWith('TOTAL')) break;
      const text = stripStart(line);
      if (NEXT_PASSED_OVER.some((one) => text.startsWith(one))) continue;
      const [sign, status] = line.includes('✗') ? ['✗', 'FAILED'] : ['✓', 'PASSED'];
      const at = line.indexOf(sign);
      if (at < 0) suites.enter(line);
      else statuses.set(suites.nameOf(stripStart(line.slice(at + 1))), status);
    }
  }
  return statuses;
}

/** What is quoted of a failure, up to an empty line. */
function withoutAssertions(log: string): string {
  const kept: string[] = [];
  let from = 0;
  ASSERTION.lastIndex = 0;
  for (let found = ASSERTION.exec(log); found !== null; found = ASSERTION.exec(log)) {
    const end = log.indexOf('\n\n', ASSERTION.lastIndex);
    if (end < 0) break;
    kept.push(log.slice(from, found.index));
    from = end + 2;
    ASSERTION.lastIndex = from;
  }
  return [...kept, log.slice(from)].join('');
}

const LIGHTHOUSE_RUN = new RegExp(`running${SPACE}${DIGIT}+${SPACE}test${SPACE}files`, 'u');
/** Of the digits each run is looked at once. */
const PASSING = new RegExp(`(?<!${DIGIT})${DIGIT}+${SPACE}passing`, 'u');
const FAILED = new RegExp(`^${DIGIT}+\\)(?=${SPACE})`, 'u');
const MILLISECONDS = new RegExp(`${DIGIT}+m+s\\)`, 'uy');

/** mocha's results, up to their sum. */
export function readLighthouseMochaLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  const names = new JoinedNames();
  for (const part of log.split(LIGHTHOUSE_RUN).slice(1)) {
    const suites = new Suites(names);
    const end = part.search(PASSING);
    for (const line of stripped(end < 0 ? part : part.slice(0, end)).split('\n')) {
      const text = stripped(line);
      const [failed] = FAILED.exec(text) ?? [];
      const sign = failed ?? (text.startsWith('✔') && isSpace(text.charAt(1)) ? '✔' : undefined);
      if (sign === undefined) {
        suites.enter(line);
        continue;
      }
      const time = lastTimingAt(text, MILLISECONDS, sign.length + 1);
      const test = text.slice(sign.length + 1, time < 0 ? text.length : time);
      statuses.set(suites.nameOf(test), failed === undefined ? 'PASSED' : 'FAILED');
    }
  }
  return statuses;
}

const HIGHLIGHT_END = new RegExp(`\\n[ \\t]*${DIGIT}+ passing`, 'u');
const NUMBERED = new RegExp(`^${DIGIT}+\\)`, 'u');
const TIMES = new RegExp(`\\(${DIGIT}+ms\\)`, 'gu');

/** mocha's results, up to their sum. The last line that is indented by two spaces or more is a test's suite. */
export function readHighlightLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  const names = new JoinedNames();
  const end = log.search(HIGHLIGHT_END);
  let suite: string[] = [];
  for (const line of (end < 0 ? log : log.slice(0, end)).split('\n')) {
    const text = stripped(line);
    const isPassed = text.startsWith('✓') || text.startsWith('✔');
    if (isPassed || NUMBERED.test(text)) {
      const test = isPassed ? stripStart(line).slice(1) : line.slice(before(line, ')').length + 1);
      const name = names.join([...suite, stripped(test.replaceAll(TIMES, ''))], '.');
      statuses.set(name, isPassed ? 'PASSED' : 'FAILED');
    } else if (line.startsWith('  ')) suite = [text];
  }
  return statuses;
}

const KARMA = new RegExp(`^(${SPACE}*)(?:([✔✖])${SPACE})?`);

/** Between the start of a browser and the summary. A suite beside another keeps the first one's name, as swebench has it. */
export function readKarmaLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  const names = new JoinedNames();
  const suites: string[] = [];
  let indent = -1;
  let hasStarted = false;
  for (const line of log.split('\n')) {
    if (line.startsWith('SUMMARY:')) break;
    if (line.includes('Starting browser')) hasStarted = true;
    else if (hasStarted) {
      const [head = '', spaces = '', sign] = KARMA.exec(line) ?? [];
      if (sign !== undefined) {
        const name = names.join([...suites, line.slice(head.length)], ' > ');
        statuses.set(name, sign === '✔' ? 'PASSED' : 'FAILED');
      } else if (spaces.length > 1 && spaces.length - 1 !== indent) {
        const isInside = spaces.length - 1 > indent;
        indent = spaces.length - 1;
        if (isInside) suites.push(line.slice(spaces.length));
        else if (suites.pop() === undefined) throw new UnreadableLog('more of its suites end than begin');
      }
    }
  }
  return statuses;
}

const PLOTLY = new RegExp(`^(${SPACE}+)([-*])(${SPACE}+)`);

/** `- suite :` and `* test : ok`, by their indent: a line that is indented no more than the suite before it ends all suites. */
export function readPlotlyLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  const names = new JoinedNames();
  let suites: string[] = [];
  let indent = 0;
  for (const line of log.split('\n')) {
    const [head = '', spaces = '', sign, gap = ''] = PLOTLY.exec(line) ?? [];
    const colon = sign === undefined ? -1 : plotlyColon(line, head.length, gap.length);
    if (colon < 0) continue;
    const title = stripped(line.slice(head.length, colon));
    if (spaces.length <= indent) suites = [];
    if (sign === '-') {
      suites.push(title);
      indent = spaces.length;
    } else {
      const told = line.slice(colon + 1).toLowerCase();
      const isFailed = !told.includes('ok') || told.includes('failed');
      statuses.set(names.join([...suites, title], '.'), isFailed ? 'FAILED' : 'PASSED');
    }
  }
  return statuses;
}

/** The first one with a space before it that is not the sign's; without any, the one that ends an empty name; -1: there is none. */
function plotlyColon(line: string, from: number, gap: number): number {
  for (let at = line.indexOf(':', from + 1); at >= 0; at = line.indexOf(':', at + 1)) {
    if (isSpace(line.charAt(at - 1))) return at;
  }
  return line.charAt(from) === ':' && gap > 1 ? from : -1;
}
