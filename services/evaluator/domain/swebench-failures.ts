// Logs that tell failures alone, as SWE-bench reads them: rows with them are graded by `eval_type: fail_only`.
import { allAre, between, DIGIT, fromTheEnd, NOT_SPACE, type Tail, withoutAnsi } from './swebench-scan.ts';
import { forward, isSpace, SPACE, type Statuses, statusesOf, stripped, wordsOf } from './swebench-words.ts';

const FAILED = 'FAILED';
const NUMBER = `[${DIGIT}.]+`;

/** -1 where the last line has none. */
const lineEnds = (log: string): ((from: number) => number) => forward((from) => log.indexOf('\n', from));

/** `FAILED` at the end of the line, which is not the log's last. */
function failedTail(log: string): Tail {
  const lineEnd = lineEnds(log);
  return (from) => {
    const end = lineEnd(from);
    const at = end - FAILED.length;
    return at >= from && log.startsWith(FAILED, at) ? [at, end + 1] : undefined;
  };
}

/** With one space before it, or with FAILED in a line of its own. */
function spacedFailedTail(log: string): Tail {
  const lineEnd = lineEnds(log);
  return (from) => {
    const end = lineEnd(from);
    if (end < 0) return undefined;
    if (log.startsWith(`\n${FAILED}\n`, end)) return [end, end + FAILED.length + 2];
    const at = end - FAILED.length;
    return at > from && isSpace(log.charAt(at - 1)) && log.startsWith(FAILED, at)
      ? [at - 1, end + 1]
      : undefined;
  };
}

const BPMN_HEADS = [
  `2KPhantomJS${SPACE}${NUMBER}${SPACE}\\(Linux${SPACE}${NUMBER}\\)${SPACE}`,
  `2KPhantomJS${SPACE}${NUMBER}${SPACE}\\(Linux${SPACE}x86_64\\)${SPACE}`,
  `HeadlessChrome${SPACE}${NUMBER}${SPACE}\\(Linux${SPACE}${NUMBER}\\)${SPACE}`,
];

export const readBpmnLog = (log: string): Statuses =>
  allAre(FAILED, [
    ...BPMN_HEADS.flatMap((head) => [...between(log, head, failedTail(log))]),
    ...headlessFailures(log),
  ]);

const HEADLESS = new RegExp(`Chrome${SPACE}Headless${SPACE}`, 'g');
const LINUX = new RegExp(`${SPACE}\\(Linux${SPACE}x86_64\\)(?=${SPACE})`, 'g');

/** `Chrome Headless VERSION (Linux x86_64) test FAILED`: a version is anything, up to the last such system of its line. */
function* headlessFailures(log: string): Generator<string> {
  const lineEnd = lineEnds(log);
  const tail = failedTail(log);
  const systems = [...log.matchAll(LINUX)].flatMap(({ index, 0: { length } }) => {
    const [end, next] = tail(index + length + 1) ?? [];
    return end === undefined ? [] : [{ at: index, start: index + length + 1, end, next }];
  });
  let last = 0;
  HEADLESS.lastIndex = 0;
  for (let found = HEADLESS.exec(log); found !== null; found = HEADLESS.exec(log)) {
    const from = HEADLESS.lastIndex;
    const line = lineEnd(from);
    const end = line < 0 ? log.length : line;
    while ((systems[last]?.at ?? Number.POSITIVE_INFINITY) <= end) last++;
    const system = systems[last - 1];
    if (system === undefined || system.at < from) HEADLESS.lastIndex = found.index + 1;
    else {
      yield log.slice(system.start, system.end);
      HEADLESS.lastIndex = system.next ?? end;
    }
  }
}

const LINE_START = '(?<![^\\n])';
const CHROME_HEADLESS = `Chrome${SPACE}Headless${SPACE}${NUMBER}${SPACE}\\(Linux${SPACE}${NOT_SPACE}+\\)${SPACE}`;
const CHROME = `Chrome${SPACE}${NUMBER}${SPACE}\\(Linux${SPACE}${NOT_SPACE}+\\)${SPACE}`;
const NUMBERED = `${LINE_START}${SPACE}{2}${DIGIT}+\\)`;

export function readOpenlayersLog(log: string): Statuses {
  const names = [
    ...between(log, CHROME_HEADLESS, spacedFailedTail(log)),
    ...between(log, CHROME, failedTail(log)),
    ...between(log, NUMBERED, tailAt(log, 'Error:')),
    ...between(log, `${LINE_START}case${SPACE}`, mismatchTail(log)),
  ];
  return allAre(FAILED, names.map(collapsed));
}

const collapsed = (text: string): string => wordsOf(text).join(' ');

/** The next `mark`, in whatever line. */
function tailAt(log: string, mark: string): Tail {
  const next = forward((from) => log.indexOf(mark, from));
  return (from) => {
    const at = next(from);
    return at < 0 ? undefined : [at, at + mark.length];
  };
}

const MISMATCH = 'mismatch';

/** `: mismatch`, the last one of the line, or in the next line. */
function mismatchTail(log: string): Tail {
  const lineEnd = lineEnds(log);
  return (from) => {
    const end = lineEnd(from);
    if (end > from && log.charAt(end - 1) === ':' && log.startsWith(MISMATCH, end + 1)) {
      return [end - 1, end + 1 + MISMATCH.length];
    }
    const line = log.slice(from, end < 0 ? log.length : end);
    for (const at of fromTheEnd(line, MISMATCH)) {
      const colon = at - 2;
      if (line.charAt(colon) === ':' && isSpace(line.charAt(at - 1)))
        return [from + colon, from + at + MISMATCH.length];
    }
    return undefined;
  };
}

const ERROR = 'Error';

/** mocha's numbered failures, each up to the first line with an error. */
export function readEslintLog(log: string): Statuses {
  return allAre(FAILED, [...between(log, `${SPACE}{2}${DIGIT}+\\)`, errorTail(log))].map(collapsed));
}

/** The spaces before a text whose line has an error in it, or behind it. */
function errorTail(log: string): Tail {
  const lineEnd = lineEnds(log);
  const nextError = forward((from) => log.indexOf(ERROR, from));
  const spaces = new RegExp(`${SPACE}+`, 'g');
  let isOver = false;
  return (from) => {
    spaces.lastIndex = from;
    for (let found = isOver ? null : spaces.exec(log); found !== null; found = spaces.exec(log)) {
      const text = spaces.lastIndex;
      const error = nextError(text);
      if (error < 0) break;
      const line = lineEnd(text);
      const end = line < 0 ? log.length : line;
      if (error + ERROR.length <= end) {
        return [found.index, log.lastIndexOf(ERROR, end - ERROR.length) + ERROR.length];
      }
    }
    // What there is not from here is not from any later place.
    isOver = true;
    return undefined;
  };
}

const BESIDE = `(?!\\n)${SPACE}`;

/** Karma's `Chrome 1.2 (Linux) test FAILED`. */
export function readChartLog(coloured: string): Statuses {
  const log = withoutAnsi(coloured);
  const lineEnd = lineEnds(log);
  const closing = new RegExp(`\\)(?=${BESIDE})`, 'g');
  const nextClosing = forward((from) => {
    closing.lastIndex = from;
    return closing.exec(log)?.index ?? -1;
  });
  const tail: Tail = (from) => {
    const line = lineEnd(from);
    const at = (line < 0 ? log.length : line) - FAILED.length;
    const close = log.startsWith(FAILED, at) ? nextClosing(from + 1) : -1;
    return close < 0 || close + 2 > at ? undefined : [at, at + FAILED.length];
  };
  const told = between(log, `Chrome${SPACE}${NUMBER}${BESIDE}\\(`, tail);
  return allAre(FAILED, [...told].map(behindClosing));
}

/** What stands behind the system, which is not empty. */
function behindClosing(text: string): string {
  const closing = new RegExp(`\\)${BESIDE}`, 'g');
  closing.lastIndex = 1;
  closing.test(text);
  return text.slice(closing.lastIndex);
}

const JASMINE = new RegExp(`^${DIGIT}+\\)(?=${SPACE})`, 'u');

/** Jasmine's numbered failures. */
export const readMarkedLog = (log: string): Statuses =>
  statusesOf(log, (line) => {
    const [head] = JASMINE.exec(line) ?? [];
    return head === undefined ? undefined : [stripped(line.slice(head.length)), FAILED];
  });
