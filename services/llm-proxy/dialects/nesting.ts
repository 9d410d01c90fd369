// How deep a request may be nested, and what a model says as JSON: both are read, digested and written recursively.
import { isWithin, valuesIn } from '../../common/json-values.ts';
import { parseExact } from '../domain/exact-numbers.ts';
import type { JsonObject, JsonValue } from '../domain/json.ts';
import { Notes } from '../domain/notes.ts';
import { invalid } from './faults.ts';

/** Above: 400. */
export const NESTING_MAX = 100;
/** Deeper arguments of a tool call are taken for no JSON: they come back some levels down in the next request. */
const ARGUMENTS_NESTING_MAX = NESTING_MAX - 10;

/** How many values a body is made of. Throws DIALECT_INVALID with the member that is nested too deep. */
export function countValues(body: JsonObject, notes = new Notes()): number {
  let count = 0;
  for (const [field, value] of Object.entries(body)) {
    count += Array.isArray(value) ? (notes.inOrder(field, value, countUpTo).at(-1) ?? 0) : countOf(value);
    if (count < Number.POSITIVE_INFINITY) continue;
    throw invalid([{ field, description: `must not be nested deeper than ${NESTING_MAX}` }]);
  }
  return count;
}

/**
 * The arguments of a tool call as a model wrote them, to be written as JSON and not looked into; undefined: they are no
 * JSON, or nested too deep.
 */
export function parseArguments(text: string): JsonValue | undefined {
  try {
    const value = parseExact(text);
    return isWithin(value, ARGUMENTS_NESTING_MAX) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Of the elements of an array so far. */
const countUpTo = (element: JsonValue, before = 0): number => before + countOf(element);

/** Two levels are above it: the member and the body. */
const countOf = (value: JsonValue): number => valuesIn(value, NESTING_MAX - 2);
