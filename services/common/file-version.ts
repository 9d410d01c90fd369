// Tells whether a file is another one than before.
import { statSync } from 'node:fs';

/** Empty where there is none. */
export function versionOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? '' : `${found.ino} ${found.mtimeMs} ${found.size}`;
}
