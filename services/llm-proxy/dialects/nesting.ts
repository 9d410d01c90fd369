// How deep a request may be nested, and what a model says as JSON: both are read, digested and written recursively.
import { isWithin, type JsonObject, type JsonValue } from '../domain/json.ts';
import { invalid } from './faults.ts';

/** Above: 400. */
export const NESTING_MAX = 100;
/** Deeper arguments of a tool call are taken for no JSON: they come back some levels down in the next request. */
const ARGUMENTS_NESTING_MAX = NESTING_MAX - 10;

/** Objects found shallow enough. The messages of earlier turns come as the very same objects. */
const shallow = new WeakSet<object>();

/** Throws DIALECT_INVALID with the member that is nested too deep. */
export function refuseDeep(body: JsonObject): void {
  for (const [field, value] of Object.entries(body)) {
    const elements = Array.isArray(value) ? value : [value];
    if (elements.every((element) => isShallow(element))) continue;
    throw invalid([{ field, description: `must not be nested deeper than ${NESTING_MAX}` }]);
  }
}

/** The arguments of a tool call as a model wrote them; undefined: they are no JSON, or nested too deep. */
export function parseArguments(text: string): JsonValue | undefined {
  try {
    const value = JSON.parse(text) as JsonValue;
    return isWithin(value, ARGUMENTS_NESTING_MAX) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isShallow(value: JsonValue): boolean {
  if (typeof value !== 'object' || value === null || shallow.has(value)) return true;
  // Two above it: the member and the body.
  if (!isWithin(value, NESTING_MAX - 2)) return false;
  shallow.add(value);
  return true;
}
