// Messages behind their lengths, cut out of what comes in, wherever that was split.
import { Code, ConnectError } from '@connectrpc/connect';
import { PREFIX_BYTES } from './byte-pieces.ts';

export interface Frame {
  readonly flags: number;
  readonly bytes: Uint8Array;
}

export class Frames {
  readonly #bytesMax: number;
  #chunks: Uint8Array[] = [];
  /** Of the chunks. */
  #sizeBytes = 0;
  /** Before there are so many, nothing more can be told. */
  #wantedBytes = PREFIX_BYTES;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The frames that are whole with these bytes. Throws ResourceExhausted for one above `bytesMax`. */
  *push(chunk: Uint8Array): Generator<Frame, void> {
    this.#chunks.push(chunk);
    this.#sizeBytes += chunk.byteLength;
    while (this.#sizeBytes >= this.#wantedBytes) {
      const all = this.#joined();
      const size = PREFIX_BYTES + all.readUInt32BE(1);
      if (size - PREFIX_BYTES > this.#bytesMax) {
        const message = `a message of ${size - PREFIX_BYTES} bytes is above ${this.#bytesMax}`;
        throw new ConnectError(message, Code.ResourceExhausted);
      }
      const isWhole = this.#sizeBytes >= size;
      this.#keep(isWhole ? all.subarray(size) : all);
      this.#wantedBytes = isWhole ? PREFIX_BYTES : size;
      if (isWhole) yield { flags: all.readUInt8(0), bytes: plain(all.subarray(PREFIX_BYTES, size)) };
    }
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    if (this.#chunks.length > 1 || first === undefined) return Buffer.concat(this.#chunks);
    return Buffer.from(first.buffer, first.byteOffset, first.byteLength);
  }

  #keep(rest: Uint8Array): void {
    this.#chunks = rest.byteLength === 0 ? [] : [rest];
    this.#sizeBytes = rest.byteLength;
  }
}

/** `slice` of a Buffer copies nothing, which who gets bytes of a message does not expect. */
const plain = ({ buffer, byteOffset, byteLength }: Buffer): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
