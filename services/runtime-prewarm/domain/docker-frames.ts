// Output of a command as a Docker engine sends it: frames of 8 bytes of head and their payload.
import type { OutputSink } from './command.ts';

const HEAD_BYTES = 8;
const STDERR = 2;

/** Reads frames that come in any pieces; payload is handed on as it comes. */
export class FrameReader {
  readonly #sink: OutputSink;
  #head = Buffer.alloc(0);
  #left = 0;
  #stream: 'stdout' | 'stderr' = 'stdout';

  constructor(sink: OutputSink) {
    this.#sink = sink;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.byteLength > 0) rest = this.#left > 0 ? this.#payload(rest) : this.#nextHead(rest);
  }

  #payload(bytes: Buffer): Buffer {
    const piece = bytes.subarray(0, this.#left);
    this.#left -= piece.byteLength;
    this.#sink(this.#stream, piece);
    return bytes.subarray(piece.byteLength);
  }

  #nextHead(bytes: Buffer): Buffer {
    const missing = HEAD_BYTES - this.#head.byteLength;
    this.#head = Buffer.concat([this.#head, bytes.subarray(0, missing)]);
    if (this.#head.byteLength === HEAD_BYTES) {
      this.#stream = this.#head[0] === STDERR ? 'stderr' : 'stdout';
      this.#left = this.#head.readUInt32BE(4);
      this.#head = Buffer.alloc(0);
    }
    return bytes.subarray(missing);
  }
}
