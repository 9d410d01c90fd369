// Which blobs a message names.

/** A BlobRef begins so in every message that holds one: its first field, of 64 bytes. */
const HEAD = Buffer.from([0x0a, 64]);
const DIGEST = /^[0-9a-f]{64}$/;

/** Digests of all BlobRefs in an encoded message, wherever they stand. What only looks like one is among them. */
export function* digestsIn(message: Uint8Array): Generator<string, void> {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  for (let at = bytes.indexOf(HEAD); at >= 0; at = bytes.indexOf(HEAD, at + 1)) {
    const digest = bytes.toString('latin1', at + HEAD.byteLength, at + HEAD.byteLength + 64);
    if (DIGEST.test(digest)) yield digest;
  }
}
