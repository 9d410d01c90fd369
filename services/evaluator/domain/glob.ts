// Globs over the paths of a repository.

/**
 * True when the pattern names the file or a folder that it lies in. A pattern without `/` may name any part of the path
 * (`*.pyc`, `__pycache__`); one with `/` starts at the root of the repository. `*` stands for anything, `/` included,
 * a folder `**` for no folder too, `?` for one character, `[a-z]` and `[!a-z]` for one of a set.
 */
export function matchesPath(pattern: string, path: string): boolean {
  const { named, anyPart } = readPattern(pattern);
  const globs = named.map(parse);
  if (globs.some((glob) => matches(glob, path))) return true;
  if (named.some((glob) => matches(parse(`${glob}/*`), path))) return true;
  return anyPart && path.split('/').some((part) => globs.some((glob) => matches(glob, part)));
}

/** What `find .` takes for the files and folders that a pattern names; what lies in these is not among them. */
export function findExpression(patterns: readonly string[]): string[] {
  const tests = patterns.flatMap((pattern) => {
    const { named, anyPart } = readPattern(pattern);
    const globs = named.map((one) => one.replaceAll('\\', String.raw`\\`));
    return globs.flatMap((glob) => [...(anyPart ? [['-name', glob]] : []), ['-path', `./${glob}`]]);
  });
  return tests.flatMap((test, index) => (index === 0 ? test : ['-o', ...test]));
}

interface Pattern {
  /** Globs, of which one is enough. */
  readonly named: readonly string[];
  readonly anyPart: boolean;
}

function readPattern(pattern: string): Pattern {
  const named = pattern.replace(/^\.?\//, '').replace(/\/+$/, '');
  return { named: withAndWithout(named), anyPart: !pattern.replace(/\/+$/, '').includes('/') };
}

/** Folders `**` of one pattern; later ones stand for one folder at least. */
const ANY_FOLDERS_MAX = 6;

/** With a folder and without one, wherever `**` is said for it. */
function withAndWithout(pattern: string, more = ANY_FOLDERS_MAX): string[] {
  const [whole, before = '', after = ''] = /^(|.*?\/)\*\*\/(.*)$/s.exec(pattern) ?? [];
  if (whole === undefined || more === 0) return [pattern];
  return withAndWithout(after, more - 1).flatMap((rest) => [`${before}*/${rest}`, before + rest]);
}

type Token = '*' | ((char: string) => boolean);

/** Follows the text once and goes back to the last `*` only, so that no pattern is slow. */
function matches(glob: readonly Token[], text: string): boolean {
  let [at, star, retry] = [0, -1, 0];
  let i = 0;
  while (i < text.length) {
    const token = glob[at];
    if (token === '*') {
      star = at++;
      retry = i;
    } else if (token?.(text[i] as string)) {
      at++;
      i++;
    } else if (star >= 0) {
      at = star + 1;
      i = ++retry;
    } else {
      return false;
    }
  }
  while (glob[at] === '*') at++;
  return at === glob.length;
}

function parse(pattern: string): Token[] {
  const tokens: Token[] = [];
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i] as string;
    const end = char === '[' ? pattern.indexOf(']', i + (pattern[i + 1] === '!' ? 3 : 2)) : -1;
    if (char === '*') {
      if (tokens.at(-1) !== '*') tokens.push('*');
    } else if (char === '?') {
      tokens.push(() => true);
    } else if (end > 0) {
      tokens.push(setOf(pattern.slice(i + 1, end)));
      i = end;
    } else {
      tokens.push((one) => one === char);
    }
  }
  return tokens;
}

function setOf(text: string): (char: string) => boolean {
  const negated = text.startsWith('!');
  const body = negated ? text.slice(1) : text;
  const ranges: [string, string][] = [];
  for (let i = 0; i < body.length; i++) {
    const from = body[i] as string;
    const ranged = body[i + 1] === '-' && i + 2 < body.length;
    ranges.push([from, ranged ? (body[i + 2] as string) : from]);
    if (ranged) i += 2;
  }
  return (char) => ranges.some(([from, to]) => from <= char && char <= to) !== negated;
}
