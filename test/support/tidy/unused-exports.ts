// Exports that nobody imports: what a file has for itself is not its surface, and what nobody has is dead.
import { basename } from 'node:path';
import { isScript, type Rule } from './tree.ts';

/** Values alone: types that are exported name parts of an exported signature. */
const EXPORT = /^export (?:abstract )?(?:async )?(?:const|let|class|function\*?) (\w+)/;
const NAME = /[A-Za-z_$][\w$]*/g;

/** Of the rules themselves, some are not read here; tests export nothing, but may hold the text of a script that does. */
const NOT_LOOKED_AT = /^test\/support\/tidy\/|\.test\.ts$/;

/** Another file names each value that a script exports, and the script. */
export const noUnusedExports: Rule = ({ files, read }) => {
  const scripts = files.filter(isScript);
  const filesWith = new Map<string, string[]>();
  for (const file of scripts) {
    for (const name of new Set(read(file).match(NAME))) {
      filesWith.set(name, [...(filesWith.get(name) ?? []), file]);
    }
  }
  const isUsed = (name: string, file: string): boolean =>
    (filesWith.get(name) ?? []).some(
      (other) => other !== file && read(other).includes(`/${basename(file)}'`),
    );
  const looked = scripts.filter((file) => !NOT_LOOKED_AT.test(file));
  return looked.flatMap((file) =>
    read(file)
      .split('\n')
      .flatMap((text, index) => {
        const name = EXPORT.exec(text)?.[1];
        if (name === undefined || isUsed(name, file)) return [];
        return [{ file, line: index + 1, message: `${name} is used by no other file` }];
      }),
  );
};
