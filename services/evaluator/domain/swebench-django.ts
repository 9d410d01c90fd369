// Logs of Django's own test program as SWE-bench reads them: `test_a (module.Class) ... ok`.
import { before, forward, isSpace, type Statuses, stripped, wordsOf } from './swebench-words.ts';

const PASSED_ENDS = [' ... ok', ' ... OK', ' ...  OK'];
/** One that prints this, and whose name means that. */
const VERSION_TEST = '--version is equivalent to version';
/** Of a test that migrations were told in the line of (django__django-7188). */
const MIGRATION = 'Applying sites.0002_alter_domain_unique...test_no_migrations';

export function readDjangoLog(log: string): Statuses {
  const statuses = new Map<string, string>();
  let latest: string | undefined;
  for (const line of log.split('\n').map(stripped)) {
    if (line.includes(VERSION_TEST)) statuses.set(VERSION_TEST, 'PASSED');
    if (line.includes(' ... ')) latest = before(line, ' ... ');
    for (const [name, status] of toldIn(line)) statuses.set(name, status);
    // Behind what the test has printed in between.
    if (line.startsWith('ok') && latest !== undefined) statuses.set(latest, 'PASSED');
  }
  for (const [head, tailOf] of INTERRUPTED) {
    for (const name of passedBehind(log, head, tailOf(log))) statuses.set(name, 'PASSED');
  }
  return statuses;
}

/** In the order in which they count. */
function toldIn(whole: string): [name: string, status: string][] {
  const told: [string, string][] = [];
  const end = PASSED_ENDS.find((one) => whole.endsWith(one));
  const isMoved = end !== undefined && whole.startsWith(MIGRATION);
  const line = isMoved ? stripped(whole.slice(whole.indexOf('...') + 3)) : whole;
  if (end !== undefined) told.push([line.endsWith(end) ? line.slice(0, -end.length) : line, 'PASSED']);
  if (line.includes(' ... skipped')) told.push([before(line, ' ... skipped'), 'SKIPPED']);
  for (const [word, status] of [
    ['FAIL', 'FAILED'],
    ['ERROR', 'ERROR'],
  ] as const) {
    if (line.endsWith(` ... ${word}`)) told.push([before(line, ` ... ${word}`), status]);
    const [, name] = line.startsWith(`${word}:`) ? wordsOf(line) : [];
    if (name !== undefined) told.push([name, status]);
  }
  return told;
}

/** Where the last thing before a line `ok` ends, which follows a head that ends at `from`; -1: it does not. `from` grows. */
type Tail = (from: number) => number;

const OK = '\nok';
const isOk = (log: string, at: number): boolean =>
  log.startsWith(OK, at) && (at + OK.length === log.length || log[at + OK.length] === '\n');

/** `text`, lines below the head or in its own. */
function tailBelow(text: string, log: string): Tail {
  const next = forward((from) => {
    let at = log.indexOf(text, from);
    while (at >= 0 && !isOk(log, at + text.length)) at = log.indexOf(text, at + 1);
    return at;
  });
  return (from) => {
    const at = next(from);
    return at < 0 ? -1 : at + text.length + OK.length;
  };
}

/** `text`, at the end of the head's line. */
function tailBeside(text: string, log: string): Tail {
  const lineEnd = forward((from) => log.indexOf('\n', from));
  return (from) => {
    const end = lineEnd(from);
    const isTail = end - text.length >= from && log.endsWith(text, end) && isOk(log, end);
    return isTail ? end + OK.length : -1;
  };
}

/** What Django has said in the middle of a test's line, so that its result stands in another. */
const INTERRUPTED: readonly (readonly [head: string, tail: (log: string) => Tail])[] = [
  ['Testing against Django installed in ', (log) => tailBelow(' silenced).', log)],
  ['Internal Server Error: /', (log) => tailBeside('/', log)],
  [
    'System check identified no issues (0 silenced)',
    (log) => (from) => (isOk(log, from) ? from + OK.length : -1),
  ],
];

const DOTS = '...';

/** Names of tests before ` ... ` and `head`. Each part of the log is looked at once. */
function passedBehind(log: string, head: string, tail: Tail): string[] {
  const names: string[] = [];
  let [from, line, lineEnd] = [0, 0, log.indexOf('\n')];
  for (let at = log.indexOf(head); at >= 0; at = log.indexOf(head, at + 1)) {
    const nameEnd = at - DOTS.length - 2;
    if (nameEnd < 0 || !isSpace(log.charAt(at - 1)) || !isSpace(log.charAt(nameEnd))) continue;
    if (!log.startsWith(DOTS, nameEnd + 1)) continue;
    for (; lineEnd >= 0 && lineEnd < nameEnd; lineEnd = log.indexOf('\n', line)) line = lineEnd + 1;
    const end = line < from ? -1 : tail(at + head.length);
    if (end < 0) continue;
    names.push(log.slice(line, nameEnd));
    from = end;
  }
  return names;
}
