// Reads the merges of a byte-level BPE tokenizer.json into typed arrays. JSON.parse of the 11 MB file would cost
// 100 MB; the list of merges says all, because the token of merge i has id 256 + i.
import type { Buffer } from 'node:buffer';

export interface Merges {
  readonly count: number;
  /** Ids of the two parts of each merge. */
  readonly left: Int32Array;
  readonly right: Int32Array;
  /** Bytes of every token, one after the other, and where each starts. */
  readonly bytes: Uint8Array;
  readonly starts: Uint32Array;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LIST_END = 0x5d;
const BYTES = 256;

/** Ids 0 to 255 are the bytes in this order: the printable ones of Latin-1 first. */
export const BYTE_ORDER: Uint8Array = byteOrder();

function byteOrder(): Uint8Array {
  const printable = (byte: number): boolean =>
    (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte <= 0xff && byte !== 0xad);
  const all = Array.from({ length: BYTES }, (_, byte) => byte);
  return Uint8Array.from([...all.filter(printable), ...all.filter((byte) => !printable(byte))]);
}

/** Throws when the file is not what it is taken for. */
export function readMerges(file: Buffer): Merges {
  const strings = new MergeStrings(file);
  const countMax = 1 << 18;
  const table = new TokenTable(countMax + BYTES, file.length);
  const left = new Int32Array(countMax);
  const right = new Int32Array(countMax);
  BYTE_ORDER.forEach((byte) => {
    table.add(Uint8Array.of(byte), 1);
  });
  const pair = new Uint8Array(2 * MergeStrings.LENGTH_MAX);
  let count = 0;
  for (;;) {
    const first = strings.next(pair, 0);
    if (first < 0) break;
    const both = first + strings.next(pair, first);
    left[count] = table.find(pair.subarray(0, first));
    right[count] = table.find(pair.subarray(first, both));
    if (left[count] === -1 || right[count] === -1) throw new Error(`merge ${count} joins unknown tokens`);
    table.add(pair, both);
    count++;
  }
  return { count, left: left.slice(0, count), right: right.slice(0, count), ...table.columns() };
}

/** The strings of `"merges": [["a", "b"], …]` as the bytes that they stand for. */
class MergeStrings {
  static readonly LENGTH_MAX = 1024;
  readonly #file: Buffer;
  readonly #byteOf: Uint8Array;
  #at: number;

  constructor(file: Buffer) {
    this.#file = file;
    this.#at = file.indexOf('"merges"') + '"merges"'.length;
    if (this.#at < '"merges"'.length) throw new Error('tokenizer.json has no merges');
    this.#byteOf = new Uint8Array(2 * BYTES);
    let stand = BYTES;
    for (let id = 0; id < BYTES; id++) {
      const byte = BYTE_ORDER[id] as number;
      this.#byteOf[id < BYTES - 68 ? byte : stand++] = byte;
    }
  }

  /** Writes the next string at `offset`; its length, or -1 at the end of the list. */
  next(target: Uint8Array, offset: number): number {
    const file = this.#file;
    let at = this.#at;
    let closed = 0;
    for (; file[at] !== QUOTE; at++) {
      if (file[at] !== LIST_END) continue;
      if (++closed === 2) return -1;
    }
    let length = 0;
    for (at++; file[at] !== QUOTE; length++) {
      let code = file[at++] as number;
      if (code === BACKSLASH) code = file[at++] as number;
      else if (code >= 0x80) code = ((code & 0x1f) << 6) | ((file[at++] as number) & 0x3f);
      target[offset + length] = this.#byteOf[code] as number;
    }
    this.#at = at + 1;
    return length;
  }
}

/** Tokens by their bytes: an open hash table. */
class TokenTable {
  readonly #slots: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #starts: Uint32Array;
  #count = 0;

  constructor(tokensMax: number, bytesMax: number) {
    this.#slots = new Int32Array(1 << (32 - Math.clz32(tokensMax)));
    this.#bytes = new Uint8Array(bytesMax);
    this.#starts = new Uint32Array(tokensMax + 1);
  }

  add(bytes: Uint8Array, length: number): void {
    const start = this.#starts[this.#count] as number;
    for (let i = 0; i < length; i++) this.#bytes[start + i] = bytes[i] as number;
    this.#starts[++this.#count] = start + length;
    this.#slots[this.#slotOf(bytes.subarray(0, length))] = this.#count;
  }

  /** -1 if there is none. */
  find(bytes: Uint8Array): number {
    return (this.#slots[this.#slotOf(bytes)] as number) - 1;
  }

  columns(): { bytes: Uint8Array; starts: Uint32Array } {
    const starts = this.#starts.slice(0, this.#count + 1);
    return { bytes: this.#bytes.slice(0, starts[this.#count]), starts };
  }

  #slotOf(bytes: Uint8Array): number {
    let hash = 0x811c9dc5;
    for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
    const mask = this.#slots.length - 1;
    let slot = (hash ^ (hash >>> 15)) & mask;
    for (; ; slot = (slot + 1) & mask) {
      const held = this.#slots[slot] as number;
      if (held === 0 || this.#equals(held - 1, bytes)) return slot;
    }
  }

  #equals(id: number, bytes: Uint8Array): boolean {
    const start = this.#starts[id] as number;
    if ((this.#starts[id + 1] as number) - start !== bytes.length) return false;
    for (let i = 0; i < bytes.length; i++) if (this.#bytes[start + i] !== bytes[i]) return false;
    return true;
  }
}
