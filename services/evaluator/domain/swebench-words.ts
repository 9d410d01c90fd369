// Lines and words as Python takes them: what SWE-bench reads in a log depends on it.

/** What Python strips, and splits at: a class for regular expressions. */
export const SPACE =
  '[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
const SPACES = new RegExp(`${SPACE}+`, 'g');
const AT_START = new RegExp(`^${SPACE}+`);
const ONE = new RegExp(SPACE);

export const isSpace = (character: string): boolean => ONE.test(character);

export const wordsOf = (line: string): string[] => line.split(SPACES).filter((word) => word !== '');

export const stripStart = (text: string): string => text.replace(AT_START, '');

/** From its end, one by one: a pattern would look for an end behind each space of it. */
export function stripEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

export const stripped = (text: string): string => stripStart(stripEnd(text));

/** What stands before the first of them; all of it where there is none. */
export function before(text: string, mark: string): string {
  const at = text.indexOf(mark);
  return at < 0 ? text : text.slice(0, at);
}

const STATUSES = ['FAILED', 'PASSED', 'SKIPPED', 'ERROR', 'XFAIL'] as const;

export const beginsWithStatus = (line: string): boolean => STATUSES.some((one) => line.startsWith(one));
export const endsWithStatus = (line: string): boolean => STATUSES.some((one) => line.endsWith(one));

/** Results by test, as a log tells them; the last one of a test counts. */
export type Statuses = ReadonlyMap<string, string>;
export type Named = readonly [name: string, status: string];

export function statusesOf(log: string, read: (line: string) => Named | undefined): Statuses {
  const statuses = new Map<string, string>();
  for (const line of log.split('\n')) {
    const [name, status] = read(line) ?? [];
    if (name !== undefined && status !== undefined) statuses.set(name, status);
  }
  return statuses;
}

/** The next of its kind at or behind `from`, each looked for once; `from` grows. -1: there is none. */
export function forward(find: (from: number) => number): (from: number) => number {
  let at = find(0);
  return (from) => {
    if (at >= 0 && at < from) at = find(from);
    return at;
  };
}
