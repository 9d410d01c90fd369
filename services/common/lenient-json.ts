// JSON as programs in Python write it: numbers that are none stand there as NaN and Infinity.
import type { JsonValue } from '@bufbuild/protobuf';

/** One of the words that JSON has not, or the quote that begins a string. */
const WORD_OR_QUOTE = /"|-?\b(?:NaN|Infinity)\b/g;

/** The value, with null for numbers that are none; undefined: it is no JSON. */
export function parseLenient(text: string): JsonValue | undefined {
  const value = parsed(text);
  if (value !== undefined || !/NaN|Infinity/.test(text)) return value;
  return parsed(withoutWords(text));
}

/** Strings are gone over by hand: a pattern needs stack for each of their characters, and a reply may have millions. */
function withoutWords(text: string): string {
  let written = '';
  let from = 0;
  WORD_OR_QUOTE.lastIndex = 0;
  for (let found = WORD_OR_QUOTE.exec(text); found !== null; found = WORD_OR_QUOTE.exec(text)) {
    if (found[0] === '"') {
      WORD_OR_QUOTE.lastIndex = stringEnd(text, found.index);
    } else {
      written += `${text.slice(from, found.index)}null`;
      from = WORD_OR_QUOTE.lastIndex;
    }
  }
  return written + text.slice(from);
}

/** Index behind the string that begins at `from`. */
function stringEnd(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text[at - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return at + 1;
  }
  return text.length;
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
