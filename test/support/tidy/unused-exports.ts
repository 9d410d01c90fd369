// Exports that nobody imports: what a file has for itself is not its surface, and what nobody has is dead.
import { isScript, type Rule } from './tree.ts';

/** Values alone: types that are exported name parts of an exported signature. */
const EXPORT = /^export (?:abstract )?(?:async )?(?:const|let|class|function\*?) (\w+)/;
const NAME = /[A-Za-z_$][\w$]*/g;

/** Another file names each value that a script exports. Not of the rules themselves, some of which are not read here. */
export const noUnusedExports: Rule = ({ files, read }) => {
  const scripts = files.filter(isScript);
  const filesWith = new Map<string, number>();
  for (const file of scripts) {
    for (const name of new Set(read(file).match(NAME))) {
      filesWith.set(name, (filesWith.get(name) ?? 0) + 1);
    }
  }
  const looked = scripts.filter((file) => !file.startsWith('test/support/tidy/'));
  return looked.flatMap((file) =>
    read(file)
      .split('\n')
      .flatMap((text, index) => {
        const name = EXPORT.exec(text)?.[1];
        if (name === undefined || (filesWith.get(name) ?? 0) > 1) return [];
        return [{ file, line: index + 1, message: `${name} is used by no other file` }];
      }),
  );
};
