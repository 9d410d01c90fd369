// Whole replies of engines are columns of numbers for the most part: ids, logprobs. They are read from the bytes
// straight into typed arrays; only what is left is parsed as JSON. Each logprob's entry (token, bytes, alternatives) is
// parsed only if somebody looks at it.
import { isObject, type JsonObject, type JsonValue } from './json.ts';
import { parseLenient } from './lenient-json.ts';

/** Members whose arrays of whole numbers become Int32Arrays, which do not show in JSON. */
const ID_MEMBERS = ['prompt_token_ids', 'token_ids', 'response_token_ids', 'input_token_ids'];
const LOGPROBS = Buffer.from('"logprobs":{"content":[');
/** As bytes in front of an array. No string can hold them: it would have to escape the quotes. */
const ID_KEYS = ID_MEMBERS.map((name) => Buffer.from(`"${name}":[`));

interface Cut {
  /** The array's brackets. */
  readonly open: number;
  readonly close: number;
  readonly column: Int32Array | number[];
}

/** Logprobs of entries that nobody has looked at. */
const columns = new WeakMap<object, readonly number[]>();

/** The column of a choice's `logprobs`, where it was cut out. */
export const logprobColumnOf = (logprobs: object): readonly number[] | undefined => columns.get(logprobs);

/** The reply, its columns cut out; undefined: it is no JSON. */
export function parseReply(bytes: Buffer): JsonValue | undefined {
  const cuts = cutsIn(bytes);
  const value = cuts && parseLenient(withoutCuts(bytes, cuts));
  if (cuts !== undefined && isObject(value) && restored(value, cuts, bytes)) return value;
  return parseLenient(bytes.toString('utf8'));
}

/** In the order of their places; undefined: one of them is not what it seems. */
function cutsIn(bytes: Buffer): Cut[] | undefined {
  const cuts: Cut[] = [];
  for (const key of [LOGPROBS, ...ID_KEYS]) {
    for (let at = bytes.indexOf(key); at >= 0; ) {
      const open = at + key.length - 1;
      const cut = key === LOGPROBS ? logprobsFrom(bytes, open) : idsFrom(bytes, open);
      if (cut === undefined) return undefined;
      cuts.push(cut);
      at = bytes.indexOf(key, cut.close);
    }
  }
  return cuts.sort((a, b) => a.open - b.open);
}

/** Each array is its number among the cuts instead. */
function withoutCuts(bytes: Buffer, cuts: readonly Cut[]): string {
  let text = '';
  let from = 0;
  for (const [i, { open, close }] of cuts.entries()) {
    text += `${bytes.toString('utf8', from, open)}${i}`;
    from = close + 1;
  }
  return text + bytes.toString('utf8', from);
}

/** Put the columns where their numbers stand. False: not each of them stands where columns are expected. */
function restored(reply: JsonObject, cuts: readonly Cut[], bytes: Buffer): boolean {
  let found = restoreIds(reply, cuts);
  for (const choice of Array.isArray(reply['choices']) ? reply['choices'] : []) {
    if (!isObject(choice)) continue;
    found += restoreIds(choice, cuts);
    const { logprobs } = choice;
    if (isObject(logprobs) && restoreLogprobs(logprobs, cuts, bytes)) found++;
  }
  return found === cuts.length;
}

function restoreIds(holder: JsonObject, cuts: readonly Cut[]): number {
  let found = 0;
  for (const name of ID_MEMBERS) {
    const column = cuts[Number(holder[name] ?? -1)]?.column;
    if (!(column instanceof Int32Array)) continue;
    Object.defineProperty(holder, name, { value: column, enumerable: false, configurable: true });
    found++;
  }
  return found;
}

function restoreLogprobs(logprobs: JsonObject, cuts: readonly Cut[], bytes: Buffer): boolean {
  const cut = cuts[Number(logprobs['content'] ?? -1)];
  if (cut === undefined || cut.column instanceof Int32Array) return false;
  columns.set(logprobs, cut.column);
  const set = (value: unknown): void => {
    Object.defineProperty(logprobs, 'content', { value, ...SHOWN, writable: true });
  };
  const get = (): JsonValue => {
    const value = parseLenient(bytes.toString('utf8', cut.open, cut.close + 1)) ?? null;
    set(value);
    return value;
  };
  Object.defineProperty(logprobs, 'content', { get, set, ...SHOWN });
  return true;
}

const SHOWN = { enumerable: true, configurable: true };
const [QUOTE, BACKSLASH, COMMA, MINUS, DOT] = [0x22, 0x5c, 0x2c, 0x2d, 0x2e];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END, ZERO] = [0x5b, 0x5d, 0x7b, 0x7d, 0x30];

/** Whole numbers of at most nine digits; undefined: something else is among them. */
function idsFrom(bytes: Buffer, open: number): Cut | undefined {
  const ids: number[] = [];
  let [id, digits] = [0, 0];
  for (let at = open + 1; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte >= ZERO && byte <= ZERO + 9) {
      id = id * 10 + byte - ZERO;
      if (++digits > 9) return undefined;
      continue;
    }
    if (digits > 0) ids.push(id);
    if (byte === ARRAY_END && (digits > 0 || at === open + 1)) {
      return { open, close: at, column: new Int32Array(ids) };
    }
    if (byte !== COMMA || digits === 0) return undefined;
    [id, digits] = [0, 0];
  }
  return undefined;
}

/** The member `logprob` of each entry; undefined: they are not such entries. */
function logprobsFrom(bytes: Buffer, open: number): Cut | undefined {
  const column: number[] = [];
  let [depth, entries] = [0, 0];
  for (let at = open + 1; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      const start = at;
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++;
      if (depth === 1 && isLogprobKey(bytes, start, at)) column.push(numberAt(bytes, at + 2));
    } else if (byte === OBJECT || byte === ARRAY) {
      if (depth++ === 0) entries++;
    } else if (byte === OBJECT_END) depth--;
    else if (byte === ARRAY_END && depth-- === 0) {
      return entries === column.length ? { open, close: at, column } : undefined;
    }
  }
  return undefined;
}

const KEY = Buffer.from('"logprob":');

const isLogprobKey = (bytes: Buffer, start: number, end: number): boolean =>
  end - start === KEY.length - 2 &&
  end + 2 <= bytes.length &&
  bytes.compare(KEY, 0, KEY.length, start, end + 2) === 0;

/** What it takes to be sure that digits times a power of ten are the number that the text says. */
const EXACT_MAX = Number.MAX_SAFE_INTEGER;
const EXACT_DIGITS_MAX = 22;

/** NaN where there is no number. */
function numberAt(bytes: Buffer, from: number): number {
  const negative = bytes[from] === MINUS;
  let [value, behindDot, dot] = [0, 0, false];
  let at = negative ? from + 1 : from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte >= ZERO && byte <= ZERO + 9) {
      value = value * 10 + byte - ZERO;
      if (dot) behindDot++;
    } else if (byte === DOT && !dot) dot = true;
    else break;
  }
  const plain = bytes[at] === COMMA || bytes[at] === OBJECT_END;
  if (!plain || value > EXACT_MAX || behindDot > EXACT_DIGITS_MAX) return slowNumberAt(bytes, from);
  const size = value / 10 ** behindDot;
  return negative ? -size : size;
}

function slowNumberAt(bytes: Buffer, from: number): number {
  let end = from;
  while (end < bytes.length && bytes[end] !== COMMA && bytes[end] !== OBJECT_END) end++;
  const text = bytes.toString('latin1', from, end).trim();
  return /^-?\d/.test(text) ? Number(text) : Number.NaN;
}
