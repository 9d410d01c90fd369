// Changes that a fresh sandbox has without the patch: what `prepare`, or an image, leaves uncommitted is in the run's sandbox, too.
import type { FilteredPatch } from './patch.ts';
import { namesOf } from './patch-names.ts';
import { type Section, sectionsOf } from './patch-sections.ts';

/** What a patch leaves of a file: `mode` and git's id of it, shortened or not; no id: no file. */
interface Left {
  readonly path: string;
  readonly mode: string;
  readonly id: string;
}

const NO_FILE = /^0+$/;
const INDEX = /^index [\da-f]+\.\.([\da-f]{7,64})(?: (\d{6}))?$/;
/** Half a character: the name is not what it is on the disk. */
const UNREADABLE = '\ufffd';

/** Paths of files of which the patch says what they are in the end. */
export const pathsLeft = ({ bytes }: FilteredPatch): string[] =>
  sectionsOf(textOf(bytes)).flatMap((section) => leftBy(section)?.path ?? []);

/** Without the files that are there already: `present` has `mode id` of each path, or nothing where there is no file. */
export function withoutPresent(patch: FilteredPatch, present: ReadonlyMap<string, string>): FilteredPatch {
  const isThere = (section: Section): boolean => {
    const left = leftBy(section);
    const found = left && present.get(left.path);
    if (left === undefined || found === undefined) return false;
    const [mode = '', id = ''] = found.split(' ');
    if (NO_FILE.test(left.id)) return found === '';
    return id.startsWith(left.id) && (left.mode === '' || left.mode === mode);
  };
  const sections = sectionsOf(textOf(patch.bytes));
  const there = new Set(sections.filter(isThere));
  if (there.size === 0) return patch;
  const paths = new Set([...there].map((section) => leftBy(section)?.path));
  const text = sections.filter((section) => !there.has(section)).map((section) => section.text);
  const files = patch.files.filter((path) => !paths.has(path));
  return { ...patch, bytes: Buffer.from(text.join(''), 'latin1'), files };
}

/** Undefined where it does not say. */
function leftBy(section: Section): Left | undefined {
  const [path, ...others] = namesOf(section) ?? [];
  const [, id, mode] = section.headers.map((line) => INDEX.exec(line)).find((found) => found !== null) ?? [];
  if (path === undefined || id === undefined || others.length > 0 || path.includes(UNREADABLE))
    return undefined;
  const said = section.headers.find((line) => /^new (?:file )?mode /.test(line));
  return { path, id, mode: said?.split(' ').at(-1) ?? mode ?? '' };
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
