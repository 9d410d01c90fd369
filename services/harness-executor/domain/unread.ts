// What a reader of an output has not had yet.

/**
 * The part of `kept` behind `offset`. Of an output of `size` bytes its beginning of up to `edgeBytes` and its end are kept,
 * with a line between them where something is missing.
 */
export function unread(kept: Uint8Array, size: number, offset: number, edgeBytes: number): Uint8Array {
  if (offset <= edgeBytes) return kept.subarray(offset);
  const missing = Math.max(0, size - offset);
  const atEnd = Math.min(edgeBytes, Math.max(0, size - edgeBytes));
  return kept.subarray(missing > atEnd ? edgeBytes : kept.byteLength - missing);
}
