// The pieces of a message on their way to a socket.
import { PolarError } from './errors.ts';

/** A message's flags and its length before it: gRPC and Connect have the same. */
export const PREFIX_BYTES = 5;
/** A smaller piece goes out together with those beside it: moving it costs less than a write of its own. */
const PIECE_BYTES_MIN = 16 * 1024;
/** Of what goes out together: a block that the allocator has at hand. */
const JOINED_BYTES_MAX = 64 * 1024;

/** What stands before a message of these parts, which is not compressed. */
export function prefixOf(parts: readonly Uint8Array[], flags = 0): Uint8Array {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt8(flags);
  prefix.writeUInt32BE(sizeOf(parts), 1);
  return prefix;
}

/** The message of a body that has one, behind its prefix. Throws INVALID_REQUEST. */
export function messageBehindPrefix(body: Uint8Array): Uint8Array {
  const { buffer, byteOffset, byteLength } = body;
  const prefix = new DataView(buffer, byteOffset, byteLength);
  if (byteLength < PREFIX_BYTES || body[0] !== 0 || prefix.getUint32(1) !== byteLength - PREFIX_BYTES) {
    throw new PolarError('INVALID_REQUEST', 'the request is not one message without compression');
  }
  return body.subarray(PREFIX_BYTES);
}

const CHUNK_END = Buffer.from('\r\n');

/** These parts as one chunk of a body of HTTP/1.1. */
export const chunkOf = (parts: readonly Uint8Array[]): Uint8Array[] => [
  Buffer.from(`${sizeOf(parts).toString(16)}\r\n`),
  ...parts,
  CHUNK_END,
];

const sizeOf = (parts: readonly Uint8Array[]): number => parts.reduce((sum, one) => sum + one.byteLength, 0);

/** The same bytes in fewer pieces; `own` are those that were made here. */
export function together(parts: readonly Uint8Array[]): {
  readonly pieces: Uint8Array[];
  readonly own: Uint8Array[];
} {
  const pieces: Uint8Array[] = [];
  const own: Uint8Array[] = [];
  for (let i = 0; i < parts.length; ) {
    const start = i;
    let size = 0;
    for (let next = parts[i]; next !== undefined && next.byteLength < PIECE_BYTES_MIN; next = parts[++i]) {
      size += next.byteLength;
      if (size > JOINED_BYTES_MAX) break;
    }
    if (i > start) {
      const piece = concatenated(parts.slice(start, i));
      pieces.push(piece);
      own.push(piece);
    }
    if (i < parts.length) pieces.push(parts[i++] as Uint8Array);
  }
  return { pieces, own };
}

/** In memory of their own. */
function concatenated(parts: readonly Uint8Array[]): Uint8Array {
  const all = Buffer.allocUnsafeSlow(sizeOf(parts));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.byteLength;
  }
  return all;
}
