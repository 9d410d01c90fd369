// Patches as git writes them, file by file. Bytes are kept as they are: a patch may hold text in any encoding.
import { matchesPath } from './glob.ts';

/** What tools leave behind and no patch is about. */
export const EXCLUDED_ALWAYS = ['__pycache__', '*.pyc', '*.pyo', '.pytest_cache'] as const;

export interface FilteredPatch {
  readonly bytes: Uint8Array;
  /** Paths of the files in it. */
  readonly files: readonly string[];
  /** Paths of the files that were left out. */
  readonly excluded: readonly string[];
}

/** Leave out the sections of files that a pattern matches, by their old or their new name. */
export function filterPatch(bytes: Uint8Array, patterns: readonly string[]): FilteredPatch {
  // One character a byte.
  const text = Buffer.from(bytes).toString('latin1');
  // Not /^/m, for which a line ends at a carriage return too.
  const parts = text.split(/(?<=^|\n)(?=diff --git )/);
  const sections = parts.filter((part) => part.startsWith(HEADER));
  const kept: string[] = [];
  const files: string[] = [];
  const excluded: string[] = [];
  for (const section of sections) {
    const paths = pathsOf(section);
    const out = paths.some((path) => patterns.some((pattern) => matchesPath(pattern, path)));
    (out ? excluded : files).push(paths.at(-1) ?? '');
    if (!out) kept.push(section);
  }
  // A patch of another tool has no such sections and is taken whole.
  const whole = sections.length === 0 ? text : kept.join('');
  return { bytes: Buffer.from(whole, 'latin1'), files, excluded };
}

/** True where there is nothing to apply. */
export const isEmptyPatch = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes).toString('latin1').trim() === '';

const HEADER = 'diff --git ';
const NAMED = /^(?:---|\+\+\+|rename from|rename to|copy from|copy to) (.*)$/;

function pathsOf(section: string): string[] {
  const [first = '', ...rest] = section.split('\n');
  const paths: string[] = [];
  for (const line of rest) {
    if (line.startsWith('@@') || line.startsWith('GIT binary patch')) break;
    const name = NAMED.exec(line)?.[1];
    if (name === undefined) continue;
    const prefixed = line.startsWith('---') || line.startsWith('+++');
    const path = unquoted(name.replace(/\t$/, ''));
    if (path !== '/dev/null') paths.push(prefixed ? path.slice(2) : path);
  }
  // Mode changes, binary and empty files have the header alone.
  return paths.length > 0 ? paths : headerPaths(first.slice(HEADER.length));
}

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
