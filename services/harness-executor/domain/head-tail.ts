// The beginning and the end of an output of any length, in bounded memory.

/** Keeps the first and the last `edgeBytes` of what is pushed, and says how much is missing between them. */
export class HeadTail {
  readonly #edgeBytes: number;
  readonly #head: Uint8Array[] = [];
  readonly #tail: Uint8Array[] = [];
  #headBytes = 0;
  #tailBytes = 0;
  #leftOutBytes = 0;

  constructor(edgeBytes: number) {
    this.#edgeBytes = edgeBytes;
  }

  push(bytes: Uint8Array): void {
    const room = Math.min(this.#edgeBytes - this.#headBytes, bytes.byteLength);
    if (room > 0) {
      this.#head.push(new Uint8Array(bytes.subarray(0, room)));
      this.#headBytes += room;
    }
    if (room < bytes.byteLength) this.#pushTail(new Uint8Array(bytes.subarray(room)));
  }

  #pushTail(bytes: Uint8Array): void {
    this.#tail.push(bytes);
    this.#tailBytes += bytes.byteLength;
    while (this.#tailBytes > this.#edgeBytes) {
      const first = this.#tail[0] as Uint8Array;
      const excess = Math.min(this.#tailBytes - this.#edgeBytes, first.byteLength);
      if (excess === first.byteLength) this.#tail.shift();
      else this.#tail[0] = first.subarray(excess);
      this.#tailBytes -= excess;
      this.#leftOutBytes += excess;
    }
  }

  /** All that was pushed, what is not kept too. */
  get sizeBytes(): number {
    return this.#headBytes + this.#leftOutBytes + this.#tailBytes;
  }

  /** What is kept, with one line where something is missing. */
  bytes(): Uint8Array {
    const gap = this.#leftOutBytes > 0 ? [Buffer.from(`\n[${this.#leftOutBytes} bytes left out]\n`)] : [];
    return Buffer.concat([...this.#head, ...gap, ...this.#tail]);
  }
}
