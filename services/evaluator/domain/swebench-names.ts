// Names that are put together of suites and their test.
import { UnreadableLog } from './swebench-scan.ts';
import { stripped, stripStart } from './swebench-words.ts';

/** In characters, of a log. Real ones have a few millions; a long suite before each of many tests would fill any memory. */
export const JOINED_NAMES_MAX = 32 * 1024 * 1024;

export class JoinedNames {
  #left = JOINED_NAMES_MAX;

  /** Throws UnreadableLog where all of them are too long. */
  join(parts: readonly string[], separator: string): string {
    this.#left -= parts.reduce((sum, part) => sum + part.length + separator.length, 0);
    if (this.#left < 0) throw new UnreadableLog('the names of its tests are too long together');
    return parts.join(separator);
  }
}

/** Suites that hold each other, by how far their lines are indented. */
export class Suites {
  readonly #names: JoinedNames;
  #open: { readonly title: string; readonly indent: number }[] = [];

  constructor(names: JoinedNames) {
    this.#names = names;
  }

  /** A line that is not indented is none. */
  enter(line: string): void {
    const indent = line.length - stripStart(line).length;
    if (indent === 0) return;
    while ((this.#open.at(-1)?.indent ?? 0) >= indent) this.#open.pop();
    this.#open.push({ title: stripped(line), indent });
  }

  nameOf(test: string): string {
    return this.#names.join([...this.titles(), test], ' - ');
  }

  titles(): string[] {
    return this.#open.map(({ title }) => title);
  }
}
