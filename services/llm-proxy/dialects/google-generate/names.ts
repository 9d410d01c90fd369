// The google-generate dialect: field names come in camel case or with underscores, and values of enumerations by name or
// by number, as the API takes both.
import { type JsonObject, type JsonValue, objectOf } from '../../domain/json.ts';

/** The object with its own members' names in camel case; what is inside is left alone. */
export function camelCased(value: unknown): JsonObject {
  const object = objectOf(value);
  if (!Object.keys(object).some((key) => key.includes('_'))) return object;
  const cased: JsonObject = {};
  for (const [key, member] of Object.entries(object)) cased[camelCase(key)] = member;
  return cased;
}

const camelCase = (key: string): string =>
  key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** A value of an enumeration by its name, where it is its number in `names`. */
export const nameOf = (value: JsonValue, names: readonly string[]): JsonValue =>
  typeof value === 'number' ? (names[value] ?? value) : value;
