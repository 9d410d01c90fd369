// Byte-level BPE: text to ids and back. No special tokens here.
import { Buffer } from 'node:buffer';
import { BYTE_ORDER, type Merges } from './merges.ts';

const BYTES = 256;
const CACHED_WORDS_MAX = 32_768;
const CACHED_WORD_CHARS_MAX = 64;

export class Bpe {
  readonly #merges: Merges;
  readonly #words: RegExp;
  readonly #idOfByte = new Uint8Array(BYTES);
  readonly #slots: Int32Array;
  readonly #cache = new Map<string, readonly number[]>();

  /** `words` cuts a text into the pieces that are encoded one by one; it must match everything. */
  constructor(merges: Merges, words: RegExp) {
    this.#merges = merges;
    this.#words = words;
    BYTE_ORDER.forEach((byte, id) => {
      this.#idOfByte[byte] = id;
    });
    this.#slots = new Int32Array(1 << (33 - Math.clz32(merges.count)));
    for (let merge = 0; merge < merges.count; merge++) {
      const slot = this.#slotOf(merges.left[merge] as number, merges.right[merge] as number);
      this.#slots[slot] = merge + 1;
    }
  }

  get size(): number {
    return BYTES + this.#merges.count;
  }

  encodeInto(ids: number[], text: string): void {
    for (const [word] of text.matchAll(this.#words)) for (const id of this.#encodeWord(word)) ids.push(id);
  }

  /** Bytes of a token: a view, not to be written. */
  bytesOf(id: number): Uint8Array {
    const { bytes, starts } = this.#merges;
    return bytes.subarray(starts[id], starts[id + 1]);
  }

  /** The two tokens that a token was merged from; undefined for a single byte. */
  partsOf(id: number): readonly [number, number] | undefined {
    if (id < BYTES || id >= this.size) return undefined;
    return [this.#merges.left[id - BYTES] as number, this.#merges.right[id - BYTES] as number];
  }

  #encodeWord(word: string): readonly number[] {
    const cached = this.#cache.get(word);
    if (cached !== undefined) return cached;
    const ids = Array.from(Buffer.from(word, 'utf8'), (byte) => this.#idOfByte[byte] as number);
    while (this.#mergeLowest(ids));
    if (word.length <= CACHED_WORD_CHARS_MAX) {
      if (this.#cache.size >= CACHED_WORDS_MAX) this.#cache.clear();
      this.#cache.set(word, ids);
    }
    return ids;
  }

  /** Applies the earliest merge that fits, everywhere; false when none does. */
  #mergeLowest(ids: number[]): boolean {
    let lowest = this.#merges.count;
    for (let i = 1; i < ids.length; i++) {
      const merge = this.#mergeOf(ids[i - 1] as number, ids[i] as number);
      if (merge >= 0 && merge < lowest) lowest = merge;
    }
    if (lowest === this.#merges.count) return false;
    const left = this.#merges.left[lowest] as number;
    const right = this.#merges.right[lowest] as number;
    let kept = 0;
    for (let i = 0; i < ids.length; i++) {
      const joined = ids[i] === left && ids[i + 1] === right;
      ids[kept++] = joined ? BYTES + lowest : (ids[i] as number);
      if (joined) i++;
    }
    ids.length = kept;
    return true;
  }

  #mergeOf(left: number, right: number): number {
    return (this.#slots[this.#slotOf(left, right)] as number) - 1;
  }

  /** Where the pair is in the open hash table, or the free slot where it would be. */
  #slotOf(left: number, right: number): number {
    const mask = this.#slots.length - 1;
    let slot = Math.imul(Math.imul(left, 0x9e3779b1) ^ right, 0x85ebca6b) >>> 3;
    for (slot &= mask; ; slot = (slot + 1) & mask) {
      const held = this.#slots[slot] as number;
      if (held === 0) return slot;
      if (this.#merges.left[held - 1] === left && this.#merges.right[held - 1] === right) return slot;
    }
  }
}
