// The beginning and the end of an output of any length, in bounded memory.

/** Keeps the first and the last `edgeBytes` of what is pushed, and says how much is missing between them. */
export class HeadTail {
  readonly #edgeBytes: number;
  /** The beginning, then what came last: one buffer, as output may come a byte at a time. */
  #kept = new Uint8Array(0);
  #length = 0;
  /** Behind the beginning, and no longer in `#kept`. */
  #gone = 0;

  constructor(edgeBytes: number) {
    this.#edgeBytes = edgeBytes;
  }

  /** Keeps a copy. */
  push(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.byteLength; from += this.#edgeBytes) {
      this.#add(bytes.subarray(from, from + this.#edgeBytes));
    }
  }

  /** So much was left out on its way here, between the first and the last `edgeBytes`; call it when all is pushed. */
  leftOut(sizeBytes: number): void {
    this.#gone += sizeBytes;
  }

  /** All that was pushed, what is not kept too, and what was left out before. */
  get sizeBytes(): number {
    return this.#gone + this.#length;
  }

  /** What is kept, with one line where something is missing. */
  bytes(): Uint8Array {
    const all = this.#kept.subarray(0, this.#length);
    const missing = this.sizeBytes - 2 * this.#edgeBytes;
    if (missing <= 0) return all.slice();
    const gap = Buffer.from(`\n[${missing} bytes left out]\n`);
    return Buffer.concat([all.subarray(0, this.#edgeBytes), gap, all.subarray(-this.#edgeBytes)]);
  }

  #add(bytes: Uint8Array): void {
    if (this.#length + bytes.byteLength > 3 * this.#edgeBytes) this.#forget();
    const length = this.#length + bytes.byteLength;
    if (length > this.#kept.byteLength) this.#grow(length);
    this.#kept.set(bytes, this.#length);
    this.#length = length;
  }

  /** Of what came behind the beginning, all but the last `edgeBytes`. */
  #forget(): void {
    const last = this.#length - this.#edgeBytes;
    this.#kept.copyWithin(this.#edgeBytes, last, this.#length);
    this.#gone += last - this.#edgeBytes;
    this.#length = 2 * this.#edgeBytes;
  }

  #grow(length: number): void {
    const grown = new Uint8Array(Math.min(3 * this.#edgeBytes, Math.max(length, 2 * this.#kept.byteLength)));
    grown.set(this.#kept.subarray(0, this.#length));
    this.#kept = grown;
  }
}
