// Ids as they stand in a JSON array, written where they are to lie: a string of them first takes three times as long.

const [ZERO, COMMA] = [0x30, 0x2c];

/** Bytes that the ids take, with a comma before each. */
export function idBytes(ids: Int32Array): number {
  let bytes = ids.length;
  for (let i = 0; i < ids.length; i++) bytes += digitsOf(ids[i] as number);
  return bytes;
}

/** Writes the ids from place `at` on, with a comma before each; returns where they end. */
export function writeIds(ids: Int32Array, into: Uint8Array, at: number): number {
  let end = at;
  for (let i = 0; i < ids.length; i++) {
    into[end] = COMMA;
    end = writeId(ids[i] as number, into, end + 1);
  }
  return end;
}

function writeId(id: number, into: Uint8Array, at: number): number {
  const end = at + digitsOf(id);
  if (id < 0) {
    Buffer.from(String(id), 'latin1').copy(into, at);
    return end;
  }
  let left = id;
  for (let place = end - 1; place >= at; place--) {
    // `| 0` keeps it a whole number for the processor, too.
    const tens = (left / 10) | 0;
    into[place] = ZERO + left - tens * 10;
    left = tens;
  }
  return end;
}

/** With the sign. */
function digitsOf(id: number): number {
  if (id < 0) return String(id).length;
  let digits = 1;
  for (let most = 10; most <= id; most *= 10) digits++;
  return digits;
}
