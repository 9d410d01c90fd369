// Memory outside of V8's heap, given back as soon as nobody looks at it.

/** Below, it is left to the next small collection. */
const GIVEN_BACK_BYTES_MIN = 4 * 1024;

/**
 * These bytes are gone for whoever still has them, where they are alone in their memory. Left to itself, such memory
 * brings on a collection of the whole heap each 64 MiB, which costs more than what is done with the bytes.
 */
export function giveBack(all: readonly Uint8Array[]): void {
  for (const { buffer, byteLength } of all) {
    const isAlone = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
    if (isAlone && byteLength >= GIVEN_BACK_BYTES_MIN) buffer.transfer(0);
  }
}
