// Tells whether a file is another one than before.
import { statSync } from 'node:fs';

/** Of one that cannot be looked at: why. */
export function versionOf(file: string): string {
  try {
    const { ino, mtimeMs, size } = statSync(file);
    return `${ino} ${mtimeMs} ${size}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  }
}
