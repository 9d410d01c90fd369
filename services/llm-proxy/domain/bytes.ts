// Bytes in pieces, as request bodies come and are kept: what the bodies of one session begin with is held once for all of
// them, and what is new is compared with it where it lies.

export class Bytes {
  readonly pieces: readonly Buffer[];
  readonly length: number;
  /** Pieces at the start that are another's, in the same memory. */
  readonly lent: number;

  constructor(pieces: readonly Buffer[], lent = 0) {
    this.pieces = pieces;
    this.length = sizeOf(pieces);
    this.lent = lent;
  }

  /** Those from `from` up to `to`, in the same memory. */
  slice(from: number, to = this.length): Buffer[] {
    const found: Buffer[] = [];
    let at = 0;
    for (const piece of this.pieces) {
      if (at >= to) break;
      const end = at + piece.length;
      if (end > from) found.push(piece.subarray(Math.max(0, from - at), to - at));
      at = end;
    }
    return found;
  }

  /** Those from `from` up to `to`, in one piece and in memory of its own. */
  copy(from = 0, to = this.length): Buffer {
    return joined(this.slice(from, to));
  }

  /** As UTF-8. */
  text(from = 0, to = this.length): string {
    const [first, ...others] = this.slice(from, to);
    if (first === undefined) return '';
    return (others.length === 0 ? first : Buffer.concat([first, ...others])).toString('utf8');
  }

  /**
   * Those up to `to`, then `tail`; holds little memory beside them. Each piece is longer than all behind it together, so
   * that there are few of them, and each byte of a conversation that grows is copied a few times in all.
   */
  before(to: number, tail: Buffer): Bytes {
    const pieces = this.slice(0, to);
    const last = [tail];
    for (let size = tail.length; (pieces.at(-1)?.length ?? size) < size; size = sizeOf(last)) {
      last.unshift(pieces.pop() as Buffer);
    }
    return new Bytes([...pieces.map(fitted), last.length === 1 ? tail : joined(last)]);
  }

  /** How many both begin with. */
  shared(other: Bytes): number {
    let [i, j, inA, inB, same] = [0, 0, 0, 0, 0];
    for (;;) {
      const [a, b] = [this.pieces[i], other.pieces[j]];
      if (a === undefined || b === undefined) return same;
      const length = Math.min(a.length - inA, b.length - inB);
      const equal = sharedLength(a, inA, b, inB, length);
      same += equal;
      if (equal < length) return same;
      inA += length;
      inB += length;
      if (inA === a.length) [i, inA] = [i + 1, 0];
      if (inB === b.length) [j, inB] = [j + 1, 0];
    }
  }

  /** Whether the piece is what stands there. */
  has(piece: Buffer, from: number): boolean {
    if (from + piece.length > this.length) return false;
    let at = 0;
    for (const own of this.slice(from, from + piece.length)) {
      if (piece.compare(own, 0, own.length, at, at + own.length) !== 0) return false;
      at += own.length;
    }
    return true;
  }

  equals(other: Bytes): boolean {
    return this.length === other.length && this.shared(other) === this.length;
  }
}

const sizeOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, { length }) => sum + length, 0);

/** In memory of its own: a view of a larger buffer would hold all of that for as long as it is kept. */
function joined(pieces: readonly Buffer[]): Buffer {
  const bytes = Buffer.allocUnsafeSlow(sizeOf(pieces));
  let at = 0;
  for (const piece of pieces) at += piece.copy(bytes, at);
  return bytes;
}

const fitted = (piece: Buffer): Buffer =>
  piece.length * 2 < piece.buffer.byteLength ? joined([piece]) : piece;

/** How many of `length` bytes are the same from the first on. */
function sharedLength(a: Buffer, fromA: number, b: Buffer, fromB: number, length: number): number {
  if (a.buffer === b.buffer && a.byteOffset + fromA === b.byteOffset + fromB) return length;
  const same = (from: number, to: number): boolean =>
    a.compare(b, fromB + from, fromB + to, fromA + from, fromA + to) === 0;
  if (same(0, length)) return length;
  let [low, high] = [0, length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (same(low, middle)) low = middle;
    else high = middle;
  }
  return low;
}
