// Names of files in a patch. Git and `patch` each read more than is taken here: what only one of them would read, or each in
// its own way, could name a file that was to be left out.
import type { Section } from './patch-sections.ts';

/** Paths of the file that a section is about, its last one at the end; undefined where they can be read otherwise. */
export function namesOf({ headers }: Section): readonly string[] | undefined {
  const behind = (...starts: string[]): string[] =>
    starts.flatMap((start) =>
      headers.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length)),
    );
  const [from, to] = [behind('rename from ', 'copy from '), behind('rename to ', 'copy to ')];
  const [header] = behind('diff --git ');
  const [first, second] = header === undefined ? [[], []] : halvesOf(header, from[0], to[0]);
  const old = [...from.map(pathIn), ...first.map(belowFolder), ...behind('--- ').flatMap(timedPaths)];
  const fresh = [...to.map(pathIn), ...second.map(belowFolder), ...behind('+++ ').flatMap(timedPaths)];
  if (from.length + to.length === 0) return agreed([...old, ...fresh]);
  // Git takes the name of a file that is new or deleted from the first line.
  if (behind('new file mode ', 'deleted file mode ').length > 0) return undefined;
  const [left, right] = [agreed(old), agreed(fresh)];
  return left && right && [...left, ...right];
}

/** Of names that are said more than once, the one. */
function agreed(paths: readonly (string | undefined)[]): readonly string[] | undefined {
  const [path, ...others] = new Set(paths);
  return path === undefined || others.length > 0 ? undefined : [path];
}

/** `a/OLD b/NEW`: names may hold blanks, but they are as long as elsewhere, and both folders are as long as each other. */
function halvesOf(header: string, old = '', fresh = ''): [string[], string[]] {
  const at = (header.length - 1 + old.length - fresh.length) / 2;
  return header[at] === ' ' ? [[header.slice(0, at)], [header.slice(at + 1)]] : [[''], ['']];
}

const NO_FILE = '/dev/null';
/** Before one, git ends a name at the blank. */
const DATE_BEHIND_BLANK = /\s\d+-\d\d-\d\d/;

/** Of `--- ` and `+++ `: behind a tab stands a time, or nothing. Without one, `patch` ends the name at a blank. */
function timedPaths(text: string): (string | undefined)[] {
  const [name = '', time, ...more] = text.split('\t');
  if (name === NO_FILE) return [];
  const isQuoted = name.startsWith('"');
  const isEnded = time === undefined ? !name.includes(' ') : !DATE_BEHIND_BLANK.test(time);
  return [isQuoted || (isEnded && more.length === 0) ? belowFolder(name) : undefined];
}

/** Without its first folder, as `-p1` takes it. */
function belowFolder(text: string): string | undefined {
  const name = nameIn(text);
  const slash = name?.indexOf('/') ?? 0;
  return slash > 0 ? canonical(name?.slice(slash + 1)) : undefined;
}

const pathIn = (text: string): string | undefined => canonical(nameIn(text));

/** Both tools put these together otherwise. */
const ODD_PARTS: readonly string[] = ['', '.', '..'];

const canonical = (path: string | undefined): string | undefined =>
  path?.split('/').some((part) => ODD_PARTS.includes(part)) ? undefined : path;

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are in no name that is not quoted
const PLAIN = /^[^\x00-\x1f\x7f"\\]*[^\x00-\x20\x7f"\\]$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: nor in one that is
const QUOTED = /^"(?:[^\x00-\x1f\x7f"\\]|\\(?:[abfnrtv"\\]|(?!000)[0-3][0-7]{2}))+"$/;
const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  t: '\t',
  n: '\n',
  v: '\v',
  f: '\f',
  r: '\r',
};

/** A name as it is, or wholly in quotes as git writes them; undefined where it is neither. Given a character a byte. */
function nameIn(text: string): string | undefined {
  if (PLAIN.test(text)) return decoded(text);
  if (!QUOTED.test(text)) return undefined;
  const unescaped = text
    .slice(1, -1)
    .replaceAll(/\\([0-7]{3}|.)/g, (_, code: string) =>
      code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (ESCAPES[code] ?? code),
    );
  return decoded(unescaped);
}

const decoded = (bytes: string): string => Buffer.from(bytes, 'latin1').toString('utf8');
