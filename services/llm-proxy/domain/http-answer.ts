// Reads HTTP/1.1 answers from the bytes of one connection, whatever pieces they come in.

export interface AnswerHead {
  readonly status: number;
  readonly contentType: string;
  /** Whether another request may follow on the connection. */
  readonly keepAlive: boolean;
  /** What an answer with an error says of when to ask again; only where it says so in seconds. */
  readonly retryAfterMs?: number | undefined;
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

  /** The bytes are the caller's again when it returns. Throws Error where this is no HTTP/1.1. */
  push(bytes: Buffer): void {
    const data = this.#kept === undefined ? bytes : Buffer.concat([this.#kept, bytes]);
    this.#kept = undefined;
    for (let at = 0; at < data.length; ) {
      const next = this.#take(data, at);
      if (next === at) {
        if (data.length - at > HEAD_BYTES_MAX) throw new Error(`more than ${HEAD_BYTES_MAX} bytes of a head`);
        this.#kept = Buffer.from(data.subarray(at));
        return;
      }
      at = next;
    }
  }

  /** The other side has ended the connection. Throws Error where an answer is not whole. */
  close(): void {
    if (this.#state === 'rest') this.#end();
    else throw new Error('the connection was closed');
  }

  /** Returns where what it has taken ends; at `at`: more bytes are needed. */
  #take(data: Buffer, at: number): number {
    switch (this.#state) {
      case 'head':
        return this.#takeHead(data, at);
      case 'size':
        return this.#takeSize(data, at);
      case 'trailers':
        return this.#takeTrailer(data, at);
      case 'rest':
        this.#parts.piece(data.subarray(at));
        return data.length;
      case 'body':
        return this.#takeBody(data, at);
      case 'chunk':
        return this.#takeChunk(data, at);
    }
  }

  #takeHead(data: Buffer, at: number): number {
    const end = data.indexOf(HEAD_END, at);
    if (end < 0) return at;
    const head = data.toString('latin1', at, end + LINE_END.length);
    const [, minor, status] = /^HTTP\/1\.([01]) (\d{3})[ \r]/.exec(head) ?? [];
    if (status === undefined) throw new Error('the answer is not HTTP/1.1');
    // What comes ahead of the answer itself, as 100 Continue, is skipped.
    if (!status.startsWith('1')) this.#begin(Number(status), head, minor === '1');
    return end + HEAD_END.length;
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
    const coding = fieldOf(head, CODING) ?? 'identity';
    if (!bare && !/^identity$/i.test(coding)) throw new Error(`the answer is packed (${coding}) unasked`);
    const connection = fieldOf(head, CONNECTION) ?? '';
    const stays = persistent ? !/\bclose\b/i.test(connection) : /\bkeep-alive\b/i.test(connection);
    this.#keepAlive = stays && this.#state !== 'rest';
    const contentType = fieldOf(head, TYPE) ?? '';
    this.#parts.head({ status, contentType, keepAlive: this.#keepAlive, ...waitIn(status, head) });
    if (this.#state === 'body' && this.#left === 0) this.#end();
  }

  #takeBody(data: Buffer, at: number): number {
    const end = Math.min(at + this.#left, data.length);
    this.#left -= end - at;
    this.#parts.piece(data.subarray(at, end));
    if (this.#left === 0) this.#end();
    return end;
  }

  #takeSize(data: Buffer, at: number): number {
    const end = data.indexOf(LINE_END, at);
    if (end < 0) return at;
    const size = sizeAt(data, at, end);
    this.#state = size === 0 ? 'trailers' : 'chunk';
    this.#left = size + LINE_END.length;
    return end + LINE_END.length;
  }

  #takeChunk(data: Buffer, at: number): number {
    const end = Math.min(at + this.#left, data.length);
    const bodyEnd = Math.min(end, at + this.#left - LINE_END.length);
    this.#left -= end - at;
    if (this.#left === 0) this.#state = 'size';
    if (bodyEnd > at) this.#parts.piece(data.subarray(at, bodyEnd));
    return end;
  }

  /** Lines up to an empty one. */
  #takeTrailer(data: Buffer, at: number): number {
    const end = data.indexOf(LINE_END, at);
    if (end < 0) return at;
    if (end === at) this.#end();
    return end + LINE_END.length;
  }

  #end(): void {
    this.#state = 'head';
    this.#parts.end();
  }
}

const [LENGTH, ENCODING, CODING, CONNECTION, TYPE, RETRY_AFTER] = [
  'content-length',
  'transfer-encoding',
  'content-encoding',
  'connection',
  'content-type',
  'retry-after',
].map((name) => new RegExp(`\\r\\n${name}:[ \\t]*([^\\r]*)`, 'i')) as [
  RegExp,
  RegExp,
  RegExp,
  RegExp,
  RegExp,
  RegExp,
];

const fieldOf = (head: string, field: RegExp): string | undefined => field.exec(head)?.[1]?.trim();

function waitIn(status: number, head: string): { retryAfterMs?: number } {
  const seconds = status < 400 ? undefined : /^[1-9]\d{0,5}$/.exec(fieldOf(head, RETRY_AFTER) ?? '')?.[0];
  return seconds === undefined ? {} : { retryAfterMs: Number(seconds) * 1_000 };
}

const SIZE_DIGITS_MAX = 8;

/** The hexadecimal number that a chunk's size line begins with; an extension may follow it. */
function sizeAt(data: Buffer, from: number, end: number): number {
  let size = 0;
  let at = from;
  for (let digit = digitOf(data[at]); at < end && digit >= 0; digit = digitOf(data[++at]))
    size = size * 16 + digit;
  const digits = at - from;
  while (at < end && (data[at] === SPACE || data[at] === TAB)) at++;
  const ends = at === end || data[at] === SEMICOLON;
  if (digits === 0 || digits > SIZE_DIGITS_MAX || !ends) throw new Error('a chunk has no size');
  return size;
}

const [TAB, SPACE, ZERO, SEMICOLON, LETTER_A] = [0x09, 0x20, 0x30, 0x3b, 0x61];

/** -1: it is none. */
function digitOf(byte = 0): number {
  if (byte >= ZERO && byte <= ZERO + 9) return byte - ZERO;
  // Upper case differs in one bit.
  const letter = (byte | 0x20) - LETTER_A;
  return letter >= 0 && letter < 6 ? letter + 10 : -1;
}
