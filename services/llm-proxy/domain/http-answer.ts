// Reads HTTP/1.1 answers from the bytes of one connection, whatever pieces they come in.

export interface AnswerHead {
  readonly status: number;
  readonly contentType: string;
  /** Whether another request may follow on the connection. */
  readonly keepAlive: boolean;
}

export interface AnswerParts {
  readonly head: (head: AnswerHead) => void;
  /** A piece of the body. */
  readonly piece: (bytes: Buffer) => void;
  readonly end: () => void;
}

/** Above it a head, a chunk's size line or the trailers are no HTTP. */
const HEAD_BYTES_MAX = 64 * 1024;
const LINE_END = Buffer.from('\r\n');
const HEAD_END = Buffer.from('\r\n\r\n');

/** `rest`: the body ends with the connection. */
type State = 'head' | 'body' | 'size' | 'chunk' | 'trailers' | 'rest';

export class AnswerReader {
  readonly #parts: AnswerParts;
  #state: State = 'head';
  /** Bytes of the body or chunk to come; of a chunk with the line end behind it. */
  #left = 0;
  #kept: Buffer | undefined;
  #keepAlive = true;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
  }

  /** Throws Error where this is no HTTP/1.1. */
  push(bytes: Buffer): void {
    let data = this.#kept === undefined ? bytes : Buffer.concat([this.#kept, bytes]);
    this.#kept = undefined;
    while (data.length > 0) {
      const used = this.#take(data);
      if (used === 0) {
        if (data.length > HEAD_BYTES_MAX) throw new Error(`more than ${HEAD_BYTES_MAX} bytes of a head`);
        this.#kept = data;
        return;
      }
      data = data.subarray(used);
    }
  }

  /** The other side has ended the connection. Throws Error where an answer is not whole. */
  close(): void {
    if (this.#state === 'rest') this.#end();
    else throw new Error('the connection was closed');
  }

  /** Returns how many bytes it has taken; 0: more are needed. */
  #take(data: Buffer): number {
    switch (this.#state) {
      case 'head':
        return this.#takeHead(data);
      case 'size':
        return this.#takeSize(data);
      case 'trailers':
        return this.#takeTrailer(data);
      case 'rest':
        this.#parts.piece(data);
        return data.length;
      case 'body':
        return this.#takeBody(data);
      case 'chunk':
        return this.#takeChunk(data);
    }
  }

  #takeHead(data: Buffer): number {
    const end = data.indexOf(HEAD_END);
    if (end < 0) return 0;
    const head = data.toString('latin1', 0, end + LINE_END.length);
    const [, minor, status] = /^HTTP\/1\.([01]) (\d{3})[ \r]/.exec(head) ?? [];
    if (status === undefined) throw new Error('the answer is not HTTP/1.1');
    const used = end + HEAD_END.length;
    // What comes ahead of the answer itself, as 100 Continue.
    if (status.startsWith('1')) return used;
    this.#begin(Number(status), head, minor === '1');
    return used;
  }

  #begin(status: number, head: string, persistent: boolean): void {
    const length = fieldOf(head, LENGTH);
    const bare = status === 204 || status === 304;
    if (bare) this.#state = 'body';
    else if (/\bchunked\b/i.test(fieldOf(head, ENCODING) ?? '')) this.#state = 'size';
    else if (length === undefined) this.#state = 'rest';
    else this.#state = 'body';
    this.#left = this.#state === 'body' && !bare ? Number(length) : 0;
    if (!Number.isSafeInteger(this.#left)) throw new Error('the answer has no number for its length');
    const connection = fieldOf(head, CONNECTION) ?? '';
    const stays = persistent ? !/\bclose\b/i.test(connection) : /\bkeep-alive\b/i.test(connection);
    this.#keepAlive = stays && this.#state !== 'rest';
    this.#parts.head({ status, contentType: fieldOf(head, TYPE) ?? '', keepAlive: this.#keepAlive });
    if (this.#state === 'body' && this.#left === 0) this.#end();
  }

  #takeBody(data: Buffer): number {
    const used = Math.min(this.#left, data.length);
    this.#left -= used;
    this.#parts.piece(used === data.length ? data : data.subarray(0, used));
    if (this.#left === 0) this.#end();
    return used;
  }

  #takeSize(data: Buffer): number {
    const end = data.indexOf(LINE_END);
    if (end < 0) return 0;
    const line = data.toString('latin1', 0, end);
    if (!/^[0-9a-f]{1,8}\s*(;|$)/i.test(line)) throw new Error('a chunk has no size');
    const size = Number.parseInt(line, 16);
    this.#state = size === 0 ? 'trailers' : 'chunk';
    this.#left = size + LINE_END.length;
    return end + LINE_END.length;
  }

  #takeChunk(data: Buffer): number {
    const used = Math.min(this.#left, data.length);
    const body = Math.min(used, this.#left - LINE_END.length);
    this.#left -= used;
    if (body > 0) this.#parts.piece(data.subarray(0, body));
    if (this.#left === 0) this.#state = 'size';
    return used;
  }

  /** Lines up to an empty one. */
  #takeTrailer(data: Buffer): number {
    const end = data.indexOf(LINE_END);
    if (end < 0) return 0;
    if (end === 0) this.#end();
    return end + LINE_END.length;
  }

  #end(): void {
    this.#state = 'head';
    this.#parts.end();
  }
}

const [LENGTH, ENCODING, CONNECTION, TYPE] = [
  'content-length',
  'transfer-encoding',
  'connection',
  'content-type',
].map((name) => new RegExp(`\\r\\n${name}:[ \\t]*([^\\r]*)`, 'i')) as [RegExp, RegExp, RegExp, RegExp];

const fieldOf = (head: string, field: RegExp): string | undefined => field.exec(head)?.[1]?.trim();
