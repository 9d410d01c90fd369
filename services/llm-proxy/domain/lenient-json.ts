// JSON as engines in Python write it: numbers that are none stand there as NaN and Infinity.
import type { JsonValue } from './json.ts';

/** A string, or one of the words that JSON has not. */
const STRING_OR_WORD = /"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g;

/** The value, with null for numbers that are none; undefined: it is no JSON. */
export function parseLenient(text: string): JsonValue | undefined {
  const value = parsed(text);
  if (value !== undefined || !/NaN|Infinity/.test(text)) return value;
  return parsed(withoutWords(text));
}

const withoutWords = (text: string): string =>
  text.replace(STRING_OR_WORD, (found) => (found.startsWith('"') ? found : 'null'));

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
