// How much a JSON value is.
import type { JsonValue } from '@bufbuild/protobuf';

/** How many values a value is made of, itself too; Infinity where it has more levels of objects and arrays. */
export function valuesIn(value: JsonValue, levels: number): number {
  if (typeof value !== 'object' || value === null) return 1;
  if (levels === 0) return Number.POSITIVE_INFINITY;
  let count = 1;
  for (const inner of Object.values(value)) count += valuesIn(inner, levels - 1);
  return count;
}

/** Whether a value has at most so many levels of objects and arrays. */
export const isWithin = (value: JsonValue, levels: number): boolean =>
  valuesIn(value, levels) < Number.POSITIVE_INFINITY;
