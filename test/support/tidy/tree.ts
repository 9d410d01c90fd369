// A tree of files for the tidy rules: the repository, or one that a test plants.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Tree {
  /** Paths below the root, with `/`. */
  readonly files: readonly string[];
  /** Content by path. */
  readonly read: (file: string) => string;
}

export interface Fault {
  readonly file: string;
  /** From 1; 0 for the file as a whole. */
  readonly line: number;
  readonly message: string;
}

export type Rule = (tree: Tree) => Fault[];

/** A link to generated code; what the rules look for, written out. */
const NOT_READ = new Set([
  'clients/python/src/polar_mesh/gen',
  'test/support/tidy/planted.ts',
  'test/support/tidy/text-rules.ts',
]);

/** What is tracked, or would be: nothing that git ignores, no generated code, no vendored files, no recorded data. */
export function repositoryTree(root: string): Tree {
  const listed = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  });
  const files = listed
    .split('\0')
    .filter((file) => file !== '' && !/^(gen|third_party|test\/vectors)\//.test(file))
    .filter((file) => !/\.(binpb|png|gz)$/.test(file) && existsSync(join(root, file)))
    .filter((file) => !NOT_READ.has(file));
  return { files, read: memoised((file) => readFileSync(join(root, file), 'utf8')) };
}

/** A tree of the given files, in memory. */
export function plantedTree(contents: Readonly<Record<string, string>>): Tree {
  return { files: Object.keys(contents), read: (file) => contents[file] ?? '' };
}

/** Source that people write. */
export const isSource = (file: string): boolean => /\.(ts|mjs|js|py|sh|proto)$/.test(file);

/** TypeScript and JavaScript. */
export const isScript = (file: string): boolean => /\.(ts|mjs|js)$/.test(file);

/** Tests and what only they use. */
export const isTest = (file: string): boolean =>
  /^(test|clients\/python\/tests)\//.test(file) || /\.test\.ts$/.test(file);

/** Every line of `files` that matches, as a fault. */
export function matches(
  tree: Tree,
  files: readonly string[],
  pattern: RegExp,
  message: (found: string) => string,
): Fault[] {
  return files.flatMap((file) =>
    tree
      .read(file)
      .split('\n')
      .flatMap((text, index) => {
        const found = pattern.exec(text);
        return found === null ? [] : [{ file, line: index + 1, message: message(found[1] ?? found[0]) }];
      }),
  );
}

function memoised(read: (file: string) => string): (file: string) => string {
  const known = new Map<string, string>();
  return (file) => {
    const text = known.get(file) ?? read(file);
    known.set(file, text);
    return text;
  };
}
