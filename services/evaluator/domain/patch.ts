// Patches, file by file. Bytes are kept as they are: a patch may hold text in any encoding.
import { matchesPath } from './glob.ts';
import { type Section, sectionsOf } from './patch-sections.ts';

/** What tools leave behind and no patch is about. */
export const EXCLUDED_ALWAYS = ['__pycache__', '*.pyc', '*.pyo', '.pytest_cache'] as const;

export interface FilteredPatch {
  readonly bytes: Uint8Array;
  /** Paths of the files in it; none where it is in a form that is not read, and has all that it had. */
  readonly files: readonly string[];
  /** Paths of the files that were left out. */
  readonly excluded: readonly string[];
}

/** Leave out what is about files that a pattern matches, by their old or their new name. */
export function filterPatch(bytes: Uint8Array, patterns: readonly string[]): FilteredPatch {
  // One character a byte.
  const text = Buffer.from(bytes).toString('latin1');
  const sections = sectionsOf(text);
  const kept: string[] = [];
  const files: string[] = [];
  const excluded: string[] = [];
  for (const section of sections) {
    const paths = pathsOf(section);
    const out = paths.some((path) => patterns.some((pattern) => matchesPath(pattern, path)));
    (out ? excluded : files).push(paths.at(-1) ?? '');
    if (!out) kept.push(section.text);
  }
  // One in another form, such as a context diff, is not read.
  const whole = sections.length === 0 ? text : kept.join('');
  return { bytes: Buffer.from(whole, 'latin1'), files, excluded };
}

/** True where there is nothing to apply. */
export const isEmptyPatch = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes).toString('latin1').trim() === '';

const NAMED = /^(?:---|\+\+\+|rename from|rename to|copy from|copy to) (.*)$/s;

function pathsOf({ headers }: Section): string[] {
  const paths: string[] = [];
  for (const line of headers) {
    const name = NAMED.exec(line)?.[1];
    if (name === undefined) continue;
    const prefixed = line.startsWith('---') || line.startsWith('+++');
    // Behind a tab stands a time, or nothing.
    const path = unquoted(name.replace(/\t.*$/s, ''));
    if (path !== '/dev/null') paths.push(prefixed ? stripped(path) : path);
  }
  // Mode changes, binary and empty files have the first line alone.
  return paths.length > 0 ? paths : headerPaths(headers[0]?.slice('diff --git '.length) ?? '');
}

/** Without its first folder, as `-p1` takes it. */
const stripped = (path: string): string => path.replace(/^[^/]*\/+/, '');

const QUOTED = /^"(?:[^"\\]|\\.)*"/;

/** `a/NAME b/NAME`, where NAME may hold spaces, or both in quotes. */
function headerPaths(header: string): string[] {
  const [first] = QUOTED.exec(header) ?? [];
  if (first === undefined) return [header.slice(2, (header.length - 1) / 2)];
  return [first, header.slice(first.length + 1)].map((one) => unquoted(one).slice(2));
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  t: '\t',
  n: '\n',
  v: '\v',
  f: '\f',
  r: '\r',
};

/** A name as git quotes it, as text. */
function unquoted(name: string): string {
  const bytes =
    name.startsWith('"') && name.endsWith('"')
      ? name
          .slice(1, -1)
          .replaceAll(/\\([0-7]{3}|.)/g, (_, code: string) =>
            code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (ESCAPES[code] ?? code),
          )
      : name;
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
