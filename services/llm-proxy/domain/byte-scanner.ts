// Reads what is expected from bytes of JSON, one step after another. A pattern wants them as a string first, which for a
// whole reply is as much memory again as the reply.

import { roomForInts } from './column-room.ts';

/** Text that is compared four bytes at a time. */
export interface Literal {
  readonly sizeBytes: number;
  /** Little-endian int32s; the last one ends with the text and may overlap the one before. */
  readonly words: Int32Array;
}

const WORD_BYTES = 4;

/** ASCII of at least four characters. */
export function literal(text: string): Literal {
  const bytes = Buffer.from(text, 'latin1');
  const count = Math.ceil(bytes.length / WORD_BYTES);
  const words = Int32Array.from({ length: count }, (_, i) =>
    bytes.readInt32LE(Math.min(i * WORD_BYTES, bytes.length - WORD_BYTES)),
  );
  return { sizeBytes: bytes.length, words };
}

const [QUOTE, COMMA, MINUS, DOT, ZERO, NINE, E] = [0x22, 0x2c, 0x2d, 0x2e, 0x30, 0x39, 0x65];
const [BACKSLASH, ARRAY, ARRAY_END] = [0x5c, 0x5b, 0x5d];

const isDigit = (byte: number): boolean => byte >= ZERO && byte <= NINE;

/** An int32 has no more. */
const ID_DIGITS_MAX = 10;
const ID_MAX = 2 ** 31 - 1;
/** Digits behind those that it holds say nothing of a float32 any more, which a logprob is kept as. */
const MANTISSA_MAX = 2 ** 49;
/** Powers of ten up to here are exact. */
const EXPONENT_MAX = 22;
const POWERS = Float64Array.from({ length: EXPONENT_MAX + 1 }, (_, exponent) => 10 ** exponent);
/** However it is written; engines in Python write NaN where there is none. */
const WRITTEN = /^(?:-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|null|-?NaN|-?Infinity)/;
const WRITTEN_CHARS_MAX = 1_024;

/** Ids of one array on their way; it grows with the longest that came. */
let room = new Int32Array(4_096);

export class ByteScanner {
  readonly #bytes: Buffer;
  readonly #view: DataView;
  /** What is read next. */
  at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Goes past this text; false: it is not next. */
  literal({ sizeBytes, words }: Literal): boolean {
    const from = this.at;
    const last = from + sizeBytes - WORD_BYTES;
    if (last + WORD_BYTES > this.#bytes.length) return false;
    for (let i = 0, at = from; i < words.length; i++, at += WORD_BYTES) {
      if (this.#view.getInt32(at < last ? at : last, true) !== words[i]) return false;
    }
    this.at = from + sizeBytes;
    return true;
  }

  /** Goes past a string from behind its opening quote; false: it does not end. */
  stringEnd(): boolean {
    const bytes = this.#bytes;
    const end = bytes.length;
    for (let at = this.at; at < end; at++) {
      const byte = bytes[at];
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) {
        this.at = at + 1;
        return true;
      }
    }
    return false;
  }

  /** Goes past `null` or an array of digits and commas; false: it is neither. */
  nullOrNumbers(): boolean {
    if (this.literal(NULL)) return true;
    const bytes = this.#bytes;
    const end = bytes.length;
    let at = this.at;
    if (at >= end || bytes[at++] !== ARRAY) return false;
    while (at < end && (isDigit(bytes[at] as number) || bytes[at] === COMMA)) at++;
    if (at >= end || bytes[at] !== ARRAY_END) return false;
    this.at = at + 1;
    return true;
  }

  /** Goes past digits; false: there is none. */
  digits(): boolean {
    const from = this.at;
    while (this.at < this.#bytes.length && isDigit(this.#bytes[this.at] as number)) this.at++;
    return this.at > from;
  }

  /** Goes past a comma (true) or the end of an array (false); undefined: it is neither. */
  goesOn(): boolean | undefined {
    const byte = this.at < this.#bytes.length ? this.#bytes[this.at++] : undefined;
    return byte === COMMA ? true : byte === ARRAY_END ? false : undefined;
  }

  /** Reads a number into a place of `column`, as each that is returned is an object; NaN where there is none. */
  numberInto(column: Float64Array, place: number): void {
    if (!this.#plainInto(column, place)) this.#writtenInto(column, place);
  }

  /** Goes past a number of digits alone that fits; false: it is another. */
  #plainInto(column: Float64Array, place: number): boolean {
    const bytes = this.#bytes;
    const end = bytes.length;
    const from = this.at;
    const negative = from < end && bytes[from] === MINUS;
    const first = negative ? from + 1 : from;
    let value = 0;
    let behindDot = 0;
    let dot = false;
    let at = first;
    for (; at < end; at++) {
      const byte = bytes[at] as number;
      if (byte === DOT && !dot) dot = true;
      else if (!isDigit(byte)) break;
      else if (value < MANTISSA_MAX) {
        value = value * 10 + byte - ZERO;
        if (dot) behindDot++;
      } else if (!dot) return false;
    }
    const plain = at > first && at < end && ((bytes[at] as number) | 0x20) !== E;
    if (!plain || behindDot > EXPONENT_MAX) return false;
    this.at = at;
    const size = value / (POWERS[behindDot] as number);
    column[place] = negative ? -size : size;
    return true;
  }

  #writtenInto(column: Float64Array, place: number): void {
    const [text] = WRITTEN.exec(this.#bytes.toString('latin1', this.at, this.at + WRITTEN_CHARS_MAX)) ?? [''];
    this.at += text.length;
    column[place] = text === '' || text === 'null' ? Number.NaN : Number(text);
  }

  /** The int32s of an array, from behind its opening bracket to behind its closing one; undefined: it is none of such. */
  ids(): Int32Array | undefined {
    const bytes = this.#bytes;
    const end = bytes.length;
    let at = this.at;
    for (let count = 0; at < end; at++) {
      const from = at;
      let id = 0;
      for (; at < end && isDigit(bytes[at] as number); at++) id = id * 10 + (bytes[at] as number) - ZERO;
      const digits = at - from;
      const leadsWithZero = digits > 1 && bytes[from] === ZERO;
      if (digits === 0 || digits > ID_DIGITS_MAX || id > ID_MAX || leadsWithZero) return undefined;
      if (count === room.length) room = grown(room);
      room[count++] = id;
      if (bytes[at] === COMMA) continue;
      if (at >= end || bytes[at] !== ARRAY_END) return undefined;
      this.at = at + 1;
      const ids = roomForInts(count);
      ids.set(room.subarray(0, count));
      return ids;
    }
    return undefined;
  }
}

const NULL = literal('null');

function grown(before: Int32Array): Int32Array<ArrayBuffer> {
  const after = new Int32Array(before.length * 2);
  after.set(before);
  return after;
}
