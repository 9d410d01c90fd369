// HTTP/1.1 on raw sockets, as little of it as the stand-ins of the benchmark need: they must cost less than what they
// measure, and node:http costs as much as the bare pass-through.

const HEAD_END = Buffer.from('\r\n\r\n');

/** Takes the bytes of one connection and tells where messages end. Requests have a content-length or no body. */
export class MessageReader {
  /** Head of the message that is being read, as latin1 text. */
  head = '';
  #rest: Buffer | undefined;
  #state: 'head' | 'body' | 'size' | 'chunk' = 'head';
  #left = 0;

  /** Calls `onBody` with pieces of the body, chunk framing included, and `onEnd` at the end of each message. */
  push(bytes: Buffer, onBody: (piece: Buffer) => void, onEnd: () => void): void {
    let at = 0;
    let data = bytes;
    if (this.#rest !== undefined) {
      data = Buffer.concat([this.#rest, bytes]);
      this.#rest = undefined;
    }
    while (at < data.length || (this.#state === 'body' && this.#left === 0)) {
      if (this.#state === 'head') {
        const end = data.indexOf(HEAD_END, at);
        if (end < 0) return void this.#keep(data, at);
        this.head = data.toString('latin1', at, end + 2);
        at = end + 4;
        this.#begin();
      } else if (this.#state === 'size') {
        const end = data.indexOf('\r\n', at, 'latin1');
        if (end < 0) return void this.#keep(data, at);
        const size = Number.parseInt(data.toString('latin1', at, end), 16);
        at = end + 2;
        this.#state = 'chunk';
        // Each chunk ends with CRLF; so does the last one, of no bytes, as no trailers come.
        this.#left = size + 2;
        if (size === 0) this.#state = 'body';
      } else {
        const n = Math.min(this.#left, data.length - at);
        if (n > 0) onBody(data.subarray(at, at + n));
        at += n;
        this.#left -= n;
        if (this.#left > 0) return;
        const ended = this.#state === 'body';
        this.#state = ended ? 'head' : 'size';
        if (ended) onEnd();
      }
    }
  }

  #keep(data: Buffer, at: number): void {
    this.#rest = data.subarray(at);
  }

  #begin(): void {
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.head)?.[1];
    if (length === undefined && /\r\ntransfer-encoding: *chunked/i.test(this.head)) {
      this.#state = 'size';
    } else {
      this.#state = 'body';
      this.#left = Number(length ?? 0);
    }
  }
}

/** Microseconds of the clock that all processes of the machine share. */
export const nowUs = (): number => Number(process.hrtime.bigint() / 1000n);
