// A body while it comes. What is the same as in a known one is seen piece by piece, while the piece is in the processor's
// cache, and need not be kept: of a long conversation that grows only the end is.
import { Bytes } from './bytes.ts';

/** Below, a known body is not worth the looks. */
const KNOWN_BYTES_MIN = 64 * 1024;

export class ArrivingBody {
  /** Known ones that all was the same as, until something was kept. */
  #alike: readonly Bytes[];
  /** So many bytes of it. */
  #same = 0;
  readonly #kept: Buffer[] = [];

  /** `known`: what it may begin as. */
  constructor(known: readonly Bytes[]) {
    this.#alike = known.filter(({ length }) => length >= KNOWN_BYTES_MIN);
  }

  /** Whether the piece is kept; if not, it is of no more use. */
  add(piece: Buffer): boolean {
    if (this.#kept.length === 0) {
      const alike = this.#alike.filter((known) => known.has(piece, this.#same));
      if (alike.length > 0) {
        this.#alike = alike;
        this.#same += piece.length;
        return false;
      }
    }
    this.#kept.push(piece);
    return true;
  }

  /** All that has come. */
  whole(): Bytes {
    const lent = this.#alike[0]?.slice(0, this.#same) ?? [];
    return new Bytes([...lent, ...this.#kept], lent.length);
  }
}
