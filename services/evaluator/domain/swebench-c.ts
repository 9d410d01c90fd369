// Logs of C and C++ repositories as SWE-bench reads them.
import { JoinedNames } from './swebench-names.ts';
import {
  byLine,
  fromTheEnd,
  type Heads,
  headOf,
  isSpaceBeforeText,
  lastTimingAt,
  spacesStart,
  UnreadableLog,
  withoutDuration,
} from './swebench-scan.ts';
import { isSpace, SPACE, type Statuses, stripStart } from './swebench-words.ts';
import { xmlEvents } from './xml.ts';

const REDIS: Heads = [
  ['[ok]:', 'PASSED'],
  ['[err]:', 'FAILED'],
  ['[skip]:', 'SKIPPED'],
  ['[ignore]:', 'SKIPPED'],
];

/** `[err]: a test in tests/unit/a.tcl (5 ms)`: of failures alone it tells the file. */
export const readRedisLog = byLine((line) => {
  const [head, status] = headOf(line, REDIS) ?? [];
  if (head === undefined || status === undefined || !isSpaceBeforeText(line, head.length)) return undefined;
  const name = withoutDuration(line.slice(head.length + 1));
  return [status === 'FAILED' ? withoutFile(name) : name, status];
});

function withoutFile(name: string): string {
  let file = name.length;
  while (file > 0 && !isSpace(name.charAt(file - 1))) file--;
  const word = spacesStart(name, file) - 'in'.length;
  const end = spacesStart(name, word);
  const isTold = file < name.length && word + 'in'.length < file && name.startsWith('in', word) && end < word;
  return isTold ? name.slice(0, end) : name;
}

export const readJqLog = byLine((line) => {
  const status = line.startsWith('PASS:') ? 'PASSED' : line.startsWith('FAIL:') ? 'FAILED' : undefined;
  const at = 'PASS:'.length;
  return status === undefined || !isSpaceBeforeText(line, at) ? undefined : [line.slice(at + 1), status];
});

const MICROPYTHON: Heads = [
  ['pass', 'PASSED'],
  ['FAIL', 'FAILED'],
  ['skip', 'SKIPPED'],
];

export const readMicropythonLog = byLine((line) => {
  const [word, status] = headOf(line, MICROPYTHON) ?? [];
  if (word === undefined || status === undefined || !isSpace(line.charAt(word.length))) return undefined;
  return [stripStart(line.slice(word.length)), status];
});

const GOOGLETEST = new RegExp(`\\[${SPACE}*(OK|FAILED)${SPACE}*\\]${SPACE}`, 'y');

const ANY = /(?:)/y;

/** `[       OK ] suite.test (0 ms)`. What fails is told again at the end, without a time: that counts no more. */
export const readGoogletestLog = byLine((line) => {
  const end = line.endsWith(')') ? lastTimingAt(line, ANY, 0) : -1;
  for (const at of end < 0 ? [] : fromTheEnd(line, '[')) {
    GOOGLETEST.lastIndex = at;
    const [, word] = GOOGLETEST.exec(line) ?? [];
    const start = GOOGLETEST.lastIndex;
    if (word !== undefined && start <= end) {
      return [line.slice(start, end), word === 'OK' ? 'PASSED' : 'FAILED'];
    }
  }
  return undefined;
});

const DOCTEST_END = '</doctest>';
// biome-ignore lint/suspicious/noControlCharactersInRegex: XML has none of these
const NO_XML = /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/;

interface SubCase {
  readonly name: string;
  isFailed: boolean;
}

/** Of doctest's XML each subcase of each test case; a test case without any is no result. */
export function readDoctestLog(log: string): Statuses {
  const start = log.indexOf('<doctest');
  if (start < 0) return new Map();
  const end = log.indexOf(DOCTEST_END, start);
  if (end < 0) throw new UnreadableLog('its XML does not end');
  const xml = log.slice(start, end + DOCTEST_END.length);
  if (NO_XML.test(xml)) throw new UnreadableLog('its XML is broken');
  const names = new JoinedNames();
  const statuses = new Map<string, string>();
  for (const [test, subCases] of testCases(xml)) {
    for (const { name, isFailed } of subCases()) {
      statuses.set(names.join([test, name], ' > '), isFailed ? 'FAILED' : 'PASSED');
    }
  }
  return statuses;
}

/** In the order in which they begin, with all that they hold. */
function testCases(xml: string): [name: string, subCases: () => Iterable<SubCase>][] {
  const all: SubCase[] = [];
  const open: SubCase[] = [];
  const tests: { name: string; from: number; to: number }[] = [];
  const openTests: { to: number }[] = [];
  let depth = 0;
  for (const event of xmlEvents(xml, ['doctest'])) {
    if (event.kind === 'broken') throw new UnreadableLog('its XML is broken');
    if (event.kind === 'close') {
      depth--;
      if (event.name === 'TestCase') (openTests.pop() ?? { to: 0 }).to = all.length;
      if (event.name === 'SubCase' && open.pop()?.isFailed)
        for (const one of open.slice(-1)) one.isFailed = true;
      if (depth === 0) break;
      continue;
    }
    depth++;
    const name = event.attributes.get('name') ?? 'None';
    if (event.name === 'TestCase')
      openTests.push(tests[tests.push({ name, from: all.length, to: 0 }) - 1] ?? { to: 0 });
    if (event.name === 'SubCase')
      open.push(all[all.push({ name, isFailed: false }) - 1] ?? { name, isFailed: false });
    if (event.name === 'Expression' && event.attributes.get('success') !== 'true') {
      for (const one of open.slice(-1)) one.isFailed = true;
    }
  }
  return tests.map(({ name, from, to }) => [name, () => all.slice(from, to)]);
}
