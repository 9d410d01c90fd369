// Whether an answer is still due on a connection to the LLM proxy, as far as its bytes tell: HTTP/1.1, one request after the
// other, and answers that are written at once unless they come in chunks.

const CHUNKED = /^HTTP\/1\.1 \d+[^\r]*\r\n(?:[^\r]+\r\n)*?transfer-encoding: *chunked\r\n/i;
const LAST_CHUNK = '0\r\n\r\n';
/** Of an answer; heads of the proxy are far smaller. */
const HEAD_BYTES = 4096;

/** Is told all that comes, and how much had been sent by then. */
export class DueAnswer {
  /** Sent when the last piece came. */
  #answered: number;
  #isChunked = false;
  #tail = '';

  constructor(sentBytes: number) {
    this.#answered = sentBytes;
  }

  came(piece: Buffer, sentBytes: number): void {
    const isFirst = sentBytes > this.#answered;
    if (isFirst) this.#isChunked = CHUNKED.test(piece.toString('latin1', 0, HEAD_BYTES));
    this.#answered = sentBytes;
    // Its last chunk may come in two pieces.
    const end = piece.toString('latin1', Math.max(0, piece.length - LAST_CHUNK.length));
    this.#tail = `${isFirst ? '' : this.#tail}${end}`.slice(-LAST_CHUNK.length);
  }

  isDue(sentBytes: number): boolean {
    return sentBytes > this.#answered || (this.#isChunked && this.#tail !== LAST_CHUNK);
  }
}
