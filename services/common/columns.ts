// Packed little-endian columns: int32 ids, uint8 masks, float32 logprobs.
import { endianness } from 'node:os';

if (endianness() !== 'LE') throw new Error('columns are views of little-endian memory');

const bytesOf = (view: ArrayBufferView): Uint8Array =>
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** int32[] as bytes. */
export const packIds = (ids: readonly number[] | Int32Array): Uint8Array =>
  bytesOf(ids instanceof Int32Array ? ids : new Int32Array(ids));

/** Bytes as int32[]; copies only when the bytes are not aligned (not by `slice`: that of a Buffer copies nothing). */
export function unpackIds(bytes: Uint8Array): Int32Array {
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
  return new Int32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / 4);
}

/** Memory that is written whole before it is read: a large piece is not cleared first. */
const uncleared = (sizeBytes: number): Uint8Array => Buffer.allocUnsafeSlow(sizeBytes);

/** Room for so many ids, which are not 0 before they are written. */
export const roomForIds = (length: number): Int32Array =>
  new Int32Array(uncleared(length * 4).buffer, 0, length);

/**
 * Room for columns of so many bytes together, in one piece of memory: a piece for each of many small columns would cost
 * more to collect than to fill.
 */
export class ColumnRoom {
  readonly #room: Uint8Array;
  #at = 0;

  constructor(sizeBytes: number) {
    this.#room = uncleared(sizeBytes);
  }

  /** Bytes as int32[]: a view of them where they are aligned, else a copy. */
  ids(bytes: Uint8Array): Int32Array {
    const length = bytes.byteLength / 4;
    return isAligned(bytes)
      ? new Int32Array(bytes.buffer, bytes.byteOffset, length)
      : new Int32Array(this.#room.buffer, this.#copied(bytes), length);
  }

  /** Bytes as float32[], in the same way. */
  floats(bytes: Uint8Array): Float32Array {
    const length = bytes.byteLength / 4;
    return isAligned(bytes)
      ? new Float32Array(bytes.buffer, bytes.byteOffset, length)
      : new Float32Array(this.#room.buffer, this.#copied(bytes), length);
  }

  /** Where the copy lies in the room. */
  #copied(bytes: Uint8Array): number {
    const start = this.#at;
    this.#room.set(bytes, start);
    this.#at += bytes.byteLength;
    return start;
  }
}

/** How much room a column needs: none where it can stay where it is. */
export const roomOf = (column: Uint8Array | undefined): number =>
  column === undefined || isAligned(column) ? 0 : column.byteLength;

const isAligned = ({ byteOffset }: Uint8Array): boolean => byteOffset % 4 === 0;

/** float32[] as bytes; a hole (null or not finite) becomes NaN. */
export function packFloats(values: readonly (number | null)[] | Float32Array): Uint8Array {
  if (values instanceof Float32Array) return bytesOf(values);
  const packed = new Float32Array(values.length);
  for (let i = 0; i < packed.length; i++) packed[i] = values[i] ?? Number.NaN;
  return bytesOf(packed);
}

/** Bytes as float32[]; copies only when the bytes are not aligned. */
export function unpackFloats(bytes: Uint8Array): Float32Array {
  const aligned = bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes);
  return new Float32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength / 4);
}
