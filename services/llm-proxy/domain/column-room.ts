// Memory for columns that go with their call: a piece for each costs more to get and to collect than to fill.

const ROOM_BYTES = 64 * 1024;
/** What is longer has memory of its own. */
const SHARED_BYTES_MAX = ROOM_BYTES / 8;
const ITEM_BYTES = 4;

let room = new ArrayBuffer(ROOM_BYTES);
let used = 0;

/** Where the next column begins in `room`; columns that are there already stay. */
function begin(sizeBytes: number): number {
  if (used + sizeBytes > ROOM_BYTES) [room, used] = [new ArrayBuffer(ROOM_BYTES), 0];
  const at = used;
  used += sizeBytes;
  return at;
}

/** Zeros. Kept for longer than its call, it keeps the columns of others. */
export function roomForInts(length: number): Int32Array {
  if (length * ITEM_BYTES > SHARED_BYTES_MAX) return new Int32Array(length);
  const at = begin(length * ITEM_BYTES);
  return new Int32Array(room, at, length);
}

/** The same for float32s. */
export function roomForFloats(length: number): Float32Array {
  if (length * ITEM_BYTES > SHARED_BYTES_MAX) return new Float32Array(length);
  const at = begin(length * ITEM_BYTES);
  return new Float32Array(room, at, length);
}
