// How deep a request may be nested, and what a model says as JSON: both are read, digested and written recursively.
import { EachOnce } from '../domain/each-once.ts';
import type { JsonObject, JsonValue } from '../domain/json.ts';
import { invalid } from './faults.ts';

/** Above: 400. */
export const NESTING_MAX = 100;
/** Deeper arguments of a tool call are taken for no JSON: they come back some levels down in the next request. */
const ARGUMENTS_NESTING_MAX = NESTING_MAX - 10;

/** Two above an element: its list and the body. */
const isShallow = (element: JsonValue): boolean => within(element, NESTING_MAX - 2);
const shallow = new EachOnce(isShallow);

/** Throws DIALECT_INVALID with the member that is nested too deep. */
export function refuseDeep(body: JsonObject): void {
  for (const [field, value] of Object.entries(body)) {
    if (Array.isArray(value) ? !shallow.of(value).includes(false) : isShallow(value)) continue;
    throw invalid([{ field, description: `must not be nested deeper than ${NESTING_MAX}` }]);
  }
}

/** The arguments of a tool call as a model wrote them; undefined: they are no JSON, or nested too deep. */
export function parseArguments(text: string): JsonValue | undefined {
  try {
    const value = JSON.parse(text) as JsonValue;
    return within(value, ARGUMENTS_NESTING_MAX) ? value : undefined;
  } catch {
    return undefined;
  }
}

function within(value: JsonValue, most: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (most === 0) return false;
  for (const inner of Object.values(value)) if (!within(inner, most - 1)) return false;
  return true;
}
