// Logs with mocha's report in JSON, as SWE-bench reads them.
import { beforeLast, behindLast, between, type Tail, UnreadableLog } from './swebench-scan.ts';
import { forward, SPACE, type Statuses } from './swebench-words.ts';

const PRISM_COMMAND = './node_modules/.bin/mocha tests/run.js --reporter json';

/** One report behind each command, which the shell's trace tells. Throws UnreadableLog where it is none. */
export function readPrismLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  for (const part of log.split(PRISM_COMMAND).slice(1)) {
    const open = part.indexOf('{');
    const report = parsed(`{${beforeLast(open < 0 ? part : part.slice(open + 1), '}')}}`);
    for (const name of titlesIn(report, 'failures')) statuses.set(name, 'FAILED');
    for (const name of titlesIn(report, 'passes')) statuses.set(name, 'PASSED');
  }
  return statuses;
}

function parsed(text: string): object {
  try {
    return JSON.parse(text) as object;
  } catch {
    throw new UnreadableLog('its report is no JSON');
  }
}

function titlesIn(report: object, key: string): string[] {
  const tests: unknown = Object.hasOwn(report, key) ? report[key as keyof object] : undefined;
  if (!Array.isArray(tests)) throw new UnreadableLog(`its report has no ${key}`);
  return tests.map((test: { fullTitle?: unknown } | null) => {
    const title = test?.fullTitle;
    if (typeof title !== 'string') throw new UnreadableLog(`its report has ${key} without a title`);
    return title;
  });
}

/** Reports before each `../..`, to which the shell goes back; read by lines, so that titles keep what JSON escapes. */
export function readCypressLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  for (const part of log.split('../..').slice(0, -1)) {
    const passes = beforeLast(behindLast(part, '  "passes": ['), '  }');
    const failures = beforeLast(behindLast(part, '  "failures": ['), '  ],');
    for (const name of fullTitles(passes)) statuses.set(name, 'PASSED');
    for (const name of fullTitles(failures)) statuses.set(name, 'FAILED');
  }
  return statuses;
}

const LIGHTHOUSE_COMMAND = './node_modules/.bin/mocha --reporter json';

/** Of versions before 3: in the same way, behind each command. */
export function readLighthouseJsonLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  for (const part of log.split(LIGHTHOUSE_COMMAND).slice(1)) {
    const passes = beforeLast(behindLast(part, '"passes": ['), ']');
    const failures = beforeLast(behindLast(part, '"failures": ['), '],');
    for (const name of fullTitles(passes)) statuses.set(name, 'PASSED');
    for (const name of fullTitles(failures)) statuses.set(name, 'FAILED');
  }
  return statuses;
}

const TITLE_END = '",';

function fullTitles(text: string): Iterable<string> {
  const lineEnd = forward((from) => text.indexOf('\n', from));
  const tail: Tail = (from) => {
    const end = lineEnd(from);
    const close = end - TITLE_END.length;
    return close >= from && text.startsWith(TITLE_END, close) ? [close, end + 1] : undefined;
  };
  return between(text, `"fullTitle":${SPACE}"`, tail);
}
