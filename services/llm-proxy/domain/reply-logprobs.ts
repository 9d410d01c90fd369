// Whole replies of engines are logprobs for the most part: an object for each token, of which one number is wanted. The
// numbers are read from the text; the entries themselves are parsed only if somebody looks at them.
import { arrayOf, isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';
import { parseLenient } from './lenient-json.ts';

/** In front of the entries. No string can hold it: it would have to escape the quotes. */
const OPENING = Buffer.from('"logprobs":{"content":[');

interface Entries {
  /** The brackets of the array. */
  readonly open: number;
  readonly close: number;
  readonly logprobs: readonly number[];
}

/** Logprobs of entries that nobody has looked at, by the `logprobs` of their choice. */
const unread = new WeakMap<object, readonly number[]>();

/** The logprobs of a choice's `logprobs`, where its entries were not parsed. */
export const unreadLogprobs = (logprobs: object): readonly number[] | undefined => unread.get(logprobs);

/** The reply; undefined: it is no JSON. */
export function parseReply(bytes: Buffer): JsonValue | undefined {
  const all = entriesIn(bytes);
  const value = all && parseLenient(withoutEntries(bytes, all));
  if (all !== undefined && isObject(value) && restored(value, all, bytes)) return value;
  return parseLenient(bytes.toString('utf8'));
}

/** Of all choices in their order; undefined: one of them is not what it seems. */
function entriesIn(bytes: Buffer): Entries[] | undefined {
  const all: Entries[] = [];
  for (let at = bytes.indexOf(OPENING); at >= 0; at = bytes.indexOf(OPENING, all.at(-1)?.close)) {
    const entries = entriesFrom(bytes, at + OPENING.length - 1);
    if (entries === undefined) return undefined;
    all.push(entries);
  }
  return all;
}

/** The entries of a choice are one number instead, below 0: which they are. */
function withoutEntries(bytes: Buffer, all: readonly Entries[]): string {
  let text = '';
  let from = 0;
  for (const [i, { open, close }] of all.entries()) {
    text += `${bytes.toString('utf8', from, open)}${-1 - i}`;
    from = close + 1;
  }
  return text + bytes.toString('utf8', from);
}

/** Whether all entries have found their choice. */
function restored(reply: JsonObject, all: readonly Entries[], bytes: Buffer): boolean {
  const found = arrayOf(reply['choices']).filter((choice) => {
    const logprobs = objectOf(objectOf(choice)['logprobs']);
    const { content } = logprobs;
    const entries = typeof content === 'number' ? all[-1 - content] : undefined;
    if (entries === undefined) return false;
    unread.set(logprobs, entries.logprobs);
    showEntries(logprobs, () => bytes.toString('utf8', entries.open, entries.close + 1));
    return true;
  });
  return found.length === all.length;
}

/** The entries are there when they are asked for. */
function showEntries(logprobs: JsonObject, text: () => string): void {
  const shown = { enumerable: true, configurable: true };
  const set = (value: unknown): void => {
    Object.defineProperty(logprobs, 'content', { ...shown, value, writable: true });
  };
  const get = (): JsonValue => {
    const value = parseLenient(text()) ?? null;
    set(value);
    return value;
  };
  Object.defineProperty(logprobs, 'content', { ...shown, get, set });
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const ARRAY = 0x5b;
const ARRAY_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;

/** The member `logprob` of each entry; undefined: they are not such entries. */
function entriesFrom(bytes: Buffer, open: number): Entries | undefined {
  const logprobs: number[] = [];
  let depth = 0;
  let entries = 0;
  for (let at = open + 1; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      const start = at;
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++;
      if (depth === 1 && isKey(bytes, start, at)) logprobs.push(numberAt(bytes, at + 2));
    } else if (byte === OBJECT || byte === ARRAY) {
      if (depth++ === 0) entries++;
    } else if (byte === OBJECT_END) depth--;
    else if (byte === ARRAY_END && depth-- === 0) {
      return entries === logprobs.length ? { open, close: at, logprobs } : undefined;
    }
  }
  return undefined;
}

const KEY = [...Buffer.from('logprob":')];

/** Whether the string from `start` to the quote at `end` is the key of a logprob. */
function isKey(bytes: Buffer, start: number, end: number): boolean {
  if (end - start !== KEY.length - 1) return false;
  for (let i = 0; i < KEY.length; i++) if (bytes[start + 1 + i] !== KEY[i]) return false;
  return true;
}

/** Digits behind those that it holds say nothing of a float32 any more, which a logprob is kept as. */
const MANTISSA_MAX = 2 ** 49;
/** Powers of ten up to here are exact. */
const EXPONENT_MAX = 22;

/** NaN where there is no number. */
function numberAt(bytes: Buffer, from: number): number {
  const negative = bytes[from] === MINUS;
  let value = 0;
  let behindDot = 0;
  let dot = false;
  let at = negative ? from + 1 : from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === DOT && !dot) dot = true;
    else if (byte < ZERO || byte > ZERO + 9) break;
    else if (value < MANTISSA_MAX) {
      value = value * 10 + byte - ZERO;
      if (dot) behindDot++;
    } else if (!dot) return writtenNumberAt(bytes, from);
  }
  const plain = bytes[at] === COMMA || bytes[at] === OBJECT_END;
  if (!plain || behindDot > EXPONENT_MAX) return writtenNumberAt(bytes, from);
  const size = value / 10 ** behindDot;
  return negative ? -size : size;
}

/** However it is written. */
function writtenNumberAt(bytes: Buffer, from: number): number {
  let end = from;
  while (end < bytes.length && bytes[end] !== COMMA && bytes[end] !== OBJECT_END) end++;
  const text = bytes.toString('latin1', from, end).trim();
  return /^-?\d/.test(text) ? Number(text) : Number.NaN;
}
