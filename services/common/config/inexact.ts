// Integers of a YAML or JSON text that would be read as others: its numbers are doubles, and so are those of a message's
// free-form parts.
import { isMap, isScalar, isSeq } from 'yaml';

/** From here on, several integers are the same double. */
const WHOLE_MAX = 2n ** 53n;
const INTEGER = /^[-+]?(?:\d+|0x[\da-f]+|0o[0-7]+)$/i;

/** A fault, and where it is. */
export interface FieldPlace {
  readonly path: readonly PropertyKey[];
  readonly description: string;
}

/** Each with its place below `path`. Keys are texts; an alias is what it names, which is told there. */
export function* inexactIntegers(node: unknown, path: PropertyKey[] = []): Generator<FieldPlace> {
  if (isScalar(node)) {
    if (typeof node.value === 'number' && isInexact(node.source ?? '')) {
      const description = `${node.source} is beyond 2**53, where numbers are not exact: give it as a string`;
      yield { path, description };
    }
  } else if (isMap(node)) {
    for (const { key, value } of node.items) {
      yield* inexactIntegers(value, [...path, String(key)]);
    }
  } else if (isSeq(node)) {
    for (const [i, item] of node.items.entries()) yield* inexactIntegers(item, [...path, i]);
  }
}

/** By its text: as a number it is another one already. */
function isInexact(source: string): boolean {
  if (source.length < 16 || !INTEGER.test(source)) return false;
  return BigInt(source.replace(/^[-+]/, '')) > WHOLE_MAX;
}
