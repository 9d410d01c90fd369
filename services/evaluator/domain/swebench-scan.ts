// What the readers of SWE-bench's logs look for, found in one pass over a text. Its package has regular expressions, of which many
// look through a line, or a log, once for each place where they may begin: a log is what an agent's code has printed.
import { isSpace, type Named, SPACE, type Statuses, statusesOf, stripped } from './swebench-words.ts';

/** As Python's `\d` and `\w` take them; for expressions with the flag `u`. */
export const DIGIT = '\\p{Nd}';
export const WORD = '[\\p{L}\\p{N}_]';
export const NOT_SPACE = SPACE.replace('[', '[^');

/** swebench stops at such a log, too: no result of it counts. */
export class UnreadableLog extends Error {}

/** Of lines without the spaces around them, of which empty ones tell nothing. */
export const byLine =
  (read: (line: string) => Named | undefined) =>
  (log: string): Statuses =>
    statusesOf(log, (spaced) => {
      const line = stripped(spaced);
      return line === '' ? undefined : read(line);
    });

/** How a result begins, and its status. */
export type Heads = readonly (readonly [head: string, status: string])[];

export function headOf(line: string, heads: Heads): Heads[number] | undefined {
  for (const one of heads) if (line.startsWith(one[0])) return one;
  return undefined;
}

/** Where `mark` stands, the last one first. */
export function* fromTheEnd(text: string, mark: string): Generator<number> {
  let at = text.lastIndexOf(mark);
  while (at >= 0) {
    yield at;
    at = at === 0 ? -1 : text.lastIndexOf(mark, at - 1);
  }
}

export function spacesEnd(text: string, start: number): number {
  let at = start;
  while (isSpace(text.charAt(at))) at++;
  return at;
}

export function spacesStart(text: string, end: number): number {
  let at = end;
  while (isSpace(text.charAt(at - 1))) at--;
  return at;
}

/** Whether it has one there, and text behind it. */
export const isSpaceBeforeText = (text: string, at: number): boolean =>
  isSpace(text.charAt(at)) && text.length > at + 1;

/** What stands before the last one; all of it where there is none. */
export function beforeLast(text: string, mark: string): string {
  const at = text.lastIndexOf(mark);
  return at < 0 ? text : text.slice(0, at);
}

/** What stands behind the last one; all of it where there is none. */
export function behindLast(text: string, mark: string): string {
  const at = text.lastIndexOf(mark);
  return at < 0 ? text : text.slice(at + mark.length);
}

/** `a (b)`: what stands before the last ` (` of a line that ends with `)`; neither part is empty. */
export function beforeParentheses(line: string): string | undefined {
  const open = line.endsWith(')') ? line.lastIndexOf(' (', line.length - ' (x)'.length) : -1;
  return open < 1 ? undefined : line.slice(0, open);
}

const DURATION = new RegExp(`^${DIGIT}+${SPACE}*m?s$`, 'u');

/** `a (12 ms)` without how long it took. */
export function withoutDuration(text: string): string {
  const open = text.endsWith(')') ? text.lastIndexOf('(') : -1;
  const isOne = open > 1 && isSpace(text.charAt(open - 1)) && DURATION.test(text.slice(open + 1, -1));
  return isOne ? text.slice(0, open - 1) : text;
}

/** Where the last ` (` begins behind which `inside` stands, at `from` or behind it; -1: nowhere. */
export function lastTimingAt(line: string, inside: RegExp, from: number): number {
  for (const open of fromTheEnd(line, '(')) {
    if (open - 1 < from) return -1;
    inside.lastIndex = open + 1;
    if (isSpace(line.charAt(open - 1)) && inside.test(line)) return open - 1;
  }
  return -1;
}

/** Where a name ends, and where the log goes on behind it. */
export type Tail = (from: number) => readonly [end: number, next: number] | undefined;

/** What stands between each `head` and its tail. A tail is asked for places that grow. */
export function* between(log: string, head: string, tail: Tail): Generator<string> {
  const heads = new RegExp(head, 'gu');
  for (let found = heads.exec(log); found !== null; found = heads.exec(log)) {
    const start = heads.lastIndex;
    const [end, next] = tail(start) ?? [];
    if (end !== undefined) yield log.slice(start, end);
    heads.lastIndex = next ?? found.index + 1;
  }
}

export const allAre = (status: string, names: Iterable<string>): Statuses =>
  new Map([...names].map((name) => [name, status]));

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const ANSI = /\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])/g;

/** Without what SWE-bench takes for colours. */
export const withoutAnsi = (log: string): string => log.replaceAll(ANSI, '');
