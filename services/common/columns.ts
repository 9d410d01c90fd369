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
