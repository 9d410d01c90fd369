// Where values lie in the bytes of JSON, without parsing it. What is found here is parsed afterwards, piece by piece:
// this need not refuse what is no JSON, only never take it for something else.

const [QUOTE, COMMA, COLON, BACKSLASH] = [0x22, 0x2c, 0x3a, 0x5c];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

/** The elements of an array: element i is bytes[starts[i]..ends[i]]. */
export interface Spans {
  /** Behind the opening bracket. */
  readonly open: number;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** The closing bracket. */
  readonly close: number;
}

/** Index behind the opening bracket of the array that a member of the outermost object is; -1: it is none. */
export function findArray(bytes: Uint8Array, member: string): number {
  const at = findMember(bytes, member);
  return bytes[at] === ARRAY ? at + 1 : -1;
}

/** Where the value of a member of the outermost object begins; -1: there is none. */
function findMember(bytes: Uint8Array, member: string): number {
  let at = blank(bytes, 0);
  if (bytes[at] !== OBJECT) return -1;
  do {
    const key = blank(bytes, at + 1);
    if (bytes[key] !== QUOTE) return -1;
    const keyEnd = valueEnd(bytes, key);
    const colon = blank(bytes, keyEnd);
    if (bytes[colon] !== COLON) return -1;
    const value = blank(bytes, colon + 1);
    if (equals(bytes, key + 1, keyEnd - 1, member)) return value;
    const end = valueEnd(bytes, value);
    if (end < 0) return -1;
    at = blank(bytes, end);
  } while (bytes[at] === COMMA);
  return -1;
}

/** The value of a member of the outermost object as it is written; undefined: there is none. */
export function memberText(text: string, member: string): string | undefined {
  const bytes = Buffer.from(text);
  const at = findMember(bytes, member);
  const end = at < 0 ? -1 : valueEnd(bytes, at);
  return end < 0 ? undefined : bytes.toString('utf8', at, end);
}

/**
 * The elements of the array that begins at `known.open`, of which some are known. `bytes` begin at `base`: behind the
 * last of those, else behind the opening bracket. Unset: it does not end.
 */
export function spansFrom(bytes: Uint8Array, base: number, known: Known): Spans | undefined {
  const { open, starts, ends } = known;
  let first = ends.length === 0;
  let at = blank(bytes, 0);
  if (first && bytes[at] === ARRAY_END) return { open, starts, ends, close: base + at };
  for (; bytes[at] !== ARRAY_END || first; first = false) {
    if (!first && bytes[at] !== COMMA) return undefined;
    const start = first ? at : blank(bytes, at + 1);
    const end = valueEnd(bytes, start);
    if (end < 0) return undefined;
    starts.push(base + start);
    ends.push(base + end);
    at = blank(bytes, end);
  }
  return { open, starts, ends, close: base + at };
}

/** Where an array's first elements lie; those that are found are added. */
export interface Known {
  readonly open: number;
  readonly starts: number[];
  readonly ends: number[];
}

function blank(bytes: Uint8Array, from: number): number {
  let at = from;
  for (let byte = bytes[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; )
    byte = bytes[++at];
  return at;
}

/** Index behind the value that begins here, -1: there is none. */
function valueEnd(bytes: Uint8Array, from: number): number {
  const first = bytes[from];
  if (first === QUOTE) return stringEnd(bytes, from);
  if (first === OBJECT || first === ARRAY) return nestedEnd(bytes, from);
  let at = from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === COMMA || byte === ARRAY_END || byte === OBJECT_END || byte <= 0x20) break;
  }
  return at === from ? -1 : at;
}

function stringEnd(bytes: Uint8Array, from: number): number {
  for (let at = from + 1; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === BACKSLASH) at++;
    else if (byte === QUOTE) return at + 1;
  }
  return -1;
}

function nestedEnd(bytes: Uint8Array, from: number): number {
  let depth = 0;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      const end = stringEnd(bytes, at);
      if (end < 0) return -1;
      at = end - 1;
    } else if (byte === OBJECT || byte === ARRAY) depth++;
    else if (byte === OBJECT_END || byte === ARRAY_END) {
      if (--depth === 0) return at + 1;
    }
  }
  return -1;
}

function equals(bytes: Uint8Array, from: number, to: number, text: string): boolean {
  if (to - from !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[from + i] !== text.charCodeAt(i)) return false;
  return true;
}
