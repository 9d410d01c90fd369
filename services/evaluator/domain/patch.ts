// Patches, file by file. Bytes are kept as they are: a patch may hold text in any encoding.
import { matchesPath } from './glob.ts';
import { namesOf } from './patch-names.ts';
import { sectionsOf } from './patch-sections.ts';

/** What tools leave behind and no patch is about, and what is git's own: `patch` writes there, and a hook would run in the tests. */
export const EXCLUDED_ALWAYS = ['__pycache__', '*.pyc', '*.pyo', '.pytest_cache', '.git'] as const;

export interface FilteredPatch {
  readonly bytes: Uint8Array;
  /** Paths of the files in it; where one is not read, the line that it begins with. */
  readonly files: readonly string[];
  /** Paths of the files that were left out. */
  readonly excluded: readonly string[];
  /** False where it, or a part of it, is in a form that is not read: that is kept as it is. */
  readonly isRead: boolean;
}

/** Leave out what is about files that a pattern matches, by their old or their new name. */
export function filterPatch(bytes: Uint8Array, patterns: readonly string[]): FilteredPatch {
  // One character a byte.
  const text = Buffer.from(bytes).toString('latin1');
  const sections = sectionsOf(text);
  const kept: string[] = [];
  const files: string[] = [];
  const excluded: string[] = [];
  // One in another form, such as a context diff, has no sections.
  let isRead = sections.length > 0;
  for (const section of sections) {
    const paths = namesOf(section);
    if (paths === undefined) isRead = false;
    const out = paths?.some((path) => patterns.some((pattern) => matchesPath(pattern, path)));
    (out ? excluded : files).push(paths?.at(-1) ?? section.headers[0] ?? '');
    if (!out) kept.push(section.text);
  }
  const whole = sections.length === 0 ? text : kept.join('');
  return { bytes: Buffer.from(whole, 'latin1'), files, excluded, isRead };
}

/** Paths of all files that a patch names; undefined where a part of it cannot be read. */
export function filesOf(bytes: Uint8Array): string[] | undefined {
  const named = sectionsOf(Buffer.from(bytes).toString('latin1')).map(namesOf);
  const paths = named.flatMap((one) => one ?? []);
  return named.length === 0 || named.includes(undefined) ? undefined : [...new Set(paths)];
}

/** True where there is nothing to apply. */
export const isEmptyPatch = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes).toString('latin1').trim() === '';
