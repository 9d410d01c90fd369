// What a misspelt key may have been meant to be.
import type { ZodType } from 'zod';

/** Letters that may be wrong, missing, too many or swapped. */
const DISTANCE_MAX = 2;
const KEY_CHARS_MAX = 64;

/** The parts of zod's definitions that are gone through. */
interface Definition {
  readonly shape?: Readonly<Record<string, ZodType>>;
  readonly innerType?: ZodType;
  readonly in?: ZodType;
  readonly element?: ZodType;
  readonly valueType?: ZodType;
  readonly options?: readonly ZodType[];
}

/** The key that a schema has at a path and that is spelt most like the given one; undefined where none is near. */
export function nearKey(schema: ZodType, path: readonly PropertyKey[], key: string): string | undefined {
  if (key.length > KEY_CHARS_MAX) return undefined;
  const near = keysAt(schema, path)
    .map((known) => ({ known, distance: distance(key.toLowerCase(), known) }))
    .filter((one) => one.distance <= Math.min(DISTANCE_MAX, one.known.length / 2))
    .sort((a, b) => a.distance - b.distance);
  return near[0]?.known;
}

function keysAt(schema: ZodType, path: readonly PropertyKey[]): string[] {
  const { shape, innerType, in: input, element, valueType, options } = schema.def as Definition;
  const wrapped = innerType ?? input;
  if (wrapped !== undefined) return keysAt(wrapped, path);
  if (options !== undefined) return options.flatMap((one) => keysAt(one, path));
  const [first, ...rest] = path;
  if (first === undefined) return Object.keys(shape ?? {});
  const below = element ?? valueType ?? shape?.[String(first)];
  return below === undefined ? [] : keysAt(below, rest);
}

/** Of Levenshtein, two letters that are swapped counting as two. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const replaced = (row[j] ?? 0) + (b[j] === letter ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
