// Numbers that would be written otherwise than they came, as an id of 64 bits or 1.0: what is passed on is to have the digits
// that it came with.
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';

/** What TypeScript does not know of JSON yet. */
interface SourcedJson {
  parse(
    text: string,
    revive: (key: string, value: JsonValue, of: { readonly source?: string }) => JsonValue,
  ): JsonValue;
  rawJSON(text: string): object;
}
const { parse, rawJSON } = JSON as unknown as SourcedJson;

/** Stands in the place of a number, and is written as its text. */
export class ExactNumber {
  readonly text: string;

  constructor(source: string) {
    // A part of a text would hold all of that.
    this.text = Buffer.from(source, 'latin1').toString('latin1');
  }

  toJSON(): object {
    return rawJSON(this.text);
  }
}

/** Of 16 digits or more, with an end or an exponent that is written otherwise. It may stand in a string as well. */
const WRITTEN_OTHERWISE =
  /[\d.]{16}|(?:^|[:,[\s])(?:-0|-?\d{1,15}\.\d{0,15}0|-?\d[\d.]{0,15}[eE][-+\d]{1,15})(?:$|[,}\]\s])/;
/** Holds wherever that does, and for more; a fifth of the time. */
const SEEMS_OTHERWISE = /\d[\d.eE+-]{15}|\.\d{0,15}0(?:$|[,}\]\s])|\d[eE][-+\d]|-0(?:$|[,}\]\s])/;
/** Values that are looked at for it, each of which costs a microsecond; a text may have as many commas and opening brackets. */
const LOOKED_AT_MAX = 100_000;
const MARK = /[,[{]/g;

/** JSON with ExactNumbers; where it has very many values, without. Throws SyntaxError. */
export function parseExact(text: string): JsonValue {
  const isOtherwise = SEEMS_OTHERWISE.test(text) && WRITTEN_OTHERWISE.test(text);
  return isOtherwise && !mayHaveTooMany(text) ? parseEach(text) : (JSON.parse(text) as JsonValue);
}

function parseEach(text: string): JsonValue {
  try {
    return parse(text, asWritten);
  } catch (error) {
    // Nested too deep to be looked at.
    if (error instanceof RangeError) return JSON.parse(text) as JsonValue;
    throw error;
  }
}

const asWritten = (_: string, value: JsonValue, { source }: { readonly source?: string }): JsonValue =>
  typeof value === 'number' && source !== undefined && String(value) !== source ? exact(source) : value;

const exact = (source: string): JsonObject => new ExactNumber(source) as unknown as JsonObject;

function mayHaveTooMany(text: string): boolean {
  if (text.length <= LOOKED_AT_MAX) return false;
  let count = 0;
  MARK.lastIndex = 0;
  while (MARK.test(text)) if (++count > LOOKED_AT_MAX) return true;
  return false;
}

const numberOf = (value: JsonValue): JsonValue => (value instanceof ExactNumber ? Number(value.text) : value);

/** The object with its own members as plain numbers; what is inside is left alone. */
export function withNumbers(object: JsonObject): JsonObject {
  const exact = Object.entries(object).filter(([, value]) => value instanceof ExactNumber);
  if (exact.length === 0) return object;
  return { ...object, ...Object.fromEntries(exact.map(([key, value]) => [key, numberOf(value)])) };
}

export const isNumber = (value: JsonValue): boolean => typeof numberOf(value) === 'number';

/** The value with plain numbers all through; one that a double cannot hold is its text. */
export function rounded(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof ExactNumber) {
    const number = Number(value.text);
    return Number.isFinite(number) ? number : value.text;
  }
  if (Array.isArray(value)) return value.map(rounded);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, rounded(one)]));
}
