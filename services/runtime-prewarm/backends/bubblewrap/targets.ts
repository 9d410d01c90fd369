// Where something is shown in a sandbox that commands have written to. bwrap follows links on the way there in the host's tree,
// and makes there what is missing: so links are resolved here, inside the sandbox, and bwrap meets none.
import { lstatSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { PATH_LINKS_MAX } from '../../../common/limits.ts';
import { unsafe } from '../../domain/paths.ts';

/** Source and target. */
export type Shown = readonly [source: string, target: string];

interface Found {
  readonly at: string;
  readonly stats: Stats;
}

/** Device number of what hides an entry of a lower root. */
const WHITEOUT = 0;

/** Folders, with their targets as bwrap is to take them. `roots`: what makes up the root, top first. Throws UNSAFE_PATH. */
export const placed = (shown: readonly Shown[], roots: readonly string[]): Shown[] =>
  shown.map(([source, target]) => {
    const place = placeIn(target, roots);
    if (place === undefined || place.found?.isDirectory() === false) {
      throw unsafe(target, 'leads through something that is not a folder');
    }
    return [source, place.path];
  });

/** The same where it is possible, files too: what commands have put something else in place of is theirs. */
export const placedWherePossible = (shown: readonly Shown[], roots: readonly string[]): Shown[] =>
  shown.flatMap(([source, target]): Shown[] => {
    const own = statSync(source, { throwIfNoEntry: false });
    const place = placeIn(target, roots);
    if (own === undefined || place === undefined) return [];
    const { path, found } = place;
    return found === undefined || found.isDirectory() === own.isDirectory() ? [[source, path]] : [];
  });

/** Without links; and what is there now. Undefined: nothing can be there. */
function placeIn(target: string, roots: readonly string[]): { path: string; found?: Stats } | undefined {
  const way: string[] = [];
  const rest = partsOf(target);
  let found: Found | undefined;
  for (let links = 0, part = rest.shift(); part !== undefined; part = rest.shift()) {
    if (part === '..') {
      way.pop();
      continue;
    }
    way.push(part);
    found = topmost(roots, way.join('/'));
    if (found === undefined)
      return rest.includes('..') ? undefined : { path: `/${[...way, ...rest].join('/')}` };
    if (found.stats.isSymbolicLink()) {
      if (++links > PATH_LINKS_MAX) return undefined;
      const to = readlinkSync(found.at);
      way.length = to.startsWith('/') ? 0 : way.length - 1;
      rest.unshift(...partsOf(to));
    } else if (rest.length > 0 && !found.stats.isDirectory()) return undefined;
  }
  return { path: `/${way.join('/')}`, ...(found && { found: found.stats }) };
}

const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '' && part !== '.');

/** Undefined: there is none, or an upper root hides it. */
function topmost(roots: readonly string[], path: string): Found | undefined {
  for (const root of roots) {
    const at = join(root, path);
    const stats = statsOf(at);
    if (stats?.isCharacterDevice() && stats.rdev === WHITEOUT) return undefined;
    if (stats !== undefined) return { at, stats };
  }
  return undefined;
}

/** A lower root may have a file where an upper one has a folder. */
function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
