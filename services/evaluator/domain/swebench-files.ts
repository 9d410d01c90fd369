// Logs that tell of files, or of suites by their heads, as SWE-bench reads them: of Jest without `--verbose`, Quarto, and Cypress in
// alibaba-fusion/next.
import { JoinedNames } from './swebench-names.ts';
import { between, DIGIT, lastTimingAt, type Tail, WORD } from './swebench-scan.ts';
import { before, forward, isSpace, SPACE, type Statuses, statusesOf, stripped } from './swebench-words.ts';

const HEADS = { PASS: 'PASSED', FAIL: 'FAILED' };
const HEAD = 'PASS'.length;
const TIMINGS = ['ms\\)', `${SPACE}s\\)`, 's\\)'].map((end) => new RegExp(`[${DIGIT}.]+${end}`, 'uy'));

/** `PASS src/a.js (5.1 s)`, by files, without the last time in the line. */
export const readCarbonLog = (log: string): Statuses =>
  statusesOf(log, (line) => {
    const status = line.startsWith('PASS') ? HEADS.PASS : line.startsWith('FAIL') ? HEADS.FAIL : undefined;
    if (status === undefined || !isSpace(line.charAt(HEAD))) return undefined;
    for (const timing of TIMINGS) {
      const end = lastTimingAt(line, timing, HEAD + 1);
      if (end >= 0) return [line.slice(HEAD + 1, end), status];
    }
    return [line.slice(HEAD + 1), status];
  });

const TIME = new RegExp(`^[${DIGIT}.]+${SPACE}?m?s$`, 'u');

function withoutTime(name: string): string {
  const open = name.endsWith(')') ? name.lastIndexOf('(') : -1;
  const isTime = open > 0 && isSpace(name.charAt(open - 1)) && TIME.test(name.slice(open + 1, -1));
  return isTime ? name.slice(0, open - 1) : name;
}

/** By files: one that is told to have passed has, whatever else is told of it. */
export const readGrommetLog = (log: string): Statuses => filesIn(log, withoutTime);
export const readEmotionLog = (log: string): Statuses => filesIn(log, (name) => name);

function filesIn(log: string, nameOf: (file: string) => string): Statuses {
  const lines = log.split('\n');
  const statuses = new Map<string, string>();
  for (const head of ['FAIL', 'PASS'] as const) {
    for (const file of behindHead(lines, head)) statuses.set(nameOf(stripped(file)), HEADS[head]);
  }
  return statuses;
}

/** What stands behind it in its line, or in the next one where there is nothing. */
function* behindHead(lines: readonly string[], head: string): Generator<string> {
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    if (line === head && at + 1 < lines.length) yield lines[++at] ?? '';
    else if (line.startsWith(head) && isSpace(line.charAt(head.length))) yield line.slice(head.length + 1);
  }
}

const RUNNING = 'Running:';
const BELOW = '\n\n\n';
const LINE_START = '(?<![^\\n])';
const FAILURE = `${LINE_START}${SPACE}{4}${DIGIT}+\\)${SPACE}`;
const SUCCESS = `${LINE_START}${SPACE}{4}✓${SPACE}`;

/** Version 1.27: Cypress, `Running: a.js (1 of 2)` and a suite below. */
export function readNextCypressLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  const names = new JoinedNames();
  const suites = [...suitesIn(log)];
  for (const [index, { title, end }] of suites.entries()) {
    const part = log.slice(end, suites[index + 1]?.start ?? log.length);
    const set = (name: string, status: string): void => {
      statuses.set(names.join([title, stripped(name)], ': '), status);
    };
    for (const name of between(part, FAILURE, lineTail(part))) set(name, 'FAILED');
    for (const name of between(part, SUCCESS, bracketTail(part))) set(name, 'PASSED');
  }
  return statuses;
}

/** The end of the line. */
function lineTail(text: string): Tail {
  const next = forward((from) => text.indexOf('\n', from));
  return (from) => {
    const at = next(from);
    return at < 0 ? [text.length, text.length] : [at, at];
  };
}

/** The last opening bracket of the line. */
function bracketTail(text: string): Tail {
  const lineEnd = lineTail(text);
  return (from) => {
    const [end] = lineEnd(from) ?? [];
    const at = text.slice(from, end).lastIndexOf('(');
    return at < 0 ? undefined : [from + at, from + at + 1];
  };
}

interface Suite {
  readonly title: string;
  readonly start: number;
  readonly end: number;
}

function* suitesIn(log: string): Generator<Suite> {
  for (let start = log.indexOf(RUNNING); start >= 0; ) {
    const line = log.indexOf('\n', start);
    if (line < 0) return;
    const title = line + BELOW.length + 2;
    const isHead =
      log.startsWith(`)${BELOW}`, line - 1) &&
      line > start + RUNNING.length &&
      isSpace(log.charAt(title - 2)) &&
      isSpace(log.charAt(title - 1));
    const end = isHead ? log.indexOf('\n', title) : -1;
    if (end >= 0) yield { title: log.slice(title, end), start, end: end + 1 };
    start = log.indexOf(RUNNING, end < 0 ? line : end + 1);
  }
}

const QUARTO_TEST = /\[(?:smoke|unit)\]/;
const FOLDERS = ['\\.qmd', '/'].map((end) => new RegExp(`/tmp/${WORD}+${end}`, 'gu'));

/** Deno's results: temporary files are known by the order in which they are told, as their names are others each time. */
export function readQuartoLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  const places = new Map<string, number>();
  for (const told of log.split('\n')) {
    if (told.includes('ERRORS') || told.includes('failures:')) break;
    if (!QUARTO_TEST.test(told)) continue;
    const line = FOLDERS.reduce((text, folder) => numbered(text, folder, places), told);
    const isNone =
      line.startsWith('test result:') ||
      ['passed', 'failed', 'steps'].every((word) => line.includes(word)) ||
      line.includes('34mINFO');
    if (isNone) continue;
    const name = stripped(before(line, '...'));
    if (line.includes('32mok')) statuses.set(name, 'PASSED');
    else if (line.includes('31mFAILED') || !statuses.has(name)) statuses.set(name, 'FAILED');
  }
  return statuses;
}

/** All of a line have the number of the first one. */
function numbered(line: string, folder: RegExp, places: Map<string, number>): string {
  folder.lastIndex = 0;
  const [first] = folder.exec(line) ?? [];
  if (first === undefined) return line;
  const place = places.get(first) ?? places.size;
  places.set(first, place);
  return line.replaceAll(folder, `/tmp/${place}`);
}
