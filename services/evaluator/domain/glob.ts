// Globs over the paths of a repository.

/**
 * True when the pattern names the file or a folder that it lies in. A pattern without `/` may name any part of the path
 * (`*.pyc`, `__pycache__`); one with `/` starts at the root of the repository. `*` stands for anything, `/` included,
 * `?` for one character, `[a-z]` and `[!a-z]` for one of a set.
 */
export function matchesPath(pattern: string, path: string): boolean {
  const { named, anyPart } = readPattern(pattern);
  const glob = parse(named);
  if (matches(glob, path) || matches(parse(`${named}/*`), path)) return true;
  return anyPart && path.split('/').some((part) => matches(glob, part));
}

/** What `find .` takes for the files and folders that a pattern names; what lies in these is not among them. */
export function findExpression(patterns: readonly string[]): string[] {
  const tests = patterns.flatMap((pattern) => {
    const { named, anyPart } = readPattern(pattern);
    const glob = named.replaceAll('\\', String.raw`\\`);
    return [...(anyPart ? [['-name', glob]] : []), ['-path', `./${glob}`]];
  });
  return tests.flatMap((test, index) => (index === 0 ? test : ['-o', ...test]));
}

function readPattern(pattern: string): { readonly named: string; readonly anyPart: boolean } {
  const named = pattern.replace(/^\.?\//, '').replace(/\/+$/, '');
  return { named, anyPart: !pattern.replace(/\/+$/, '').includes('/') };
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
