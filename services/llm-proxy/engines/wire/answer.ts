// An engine's answer on its way to who asked: given on from within the read, kept only while nobody takes it.
import { ENGINE_READ_AHEAD_BYTES_MAX } from '../../../common/limits.ts';
import type { AnswerHead } from '../../domain/http-answer.ts';
import type { Taker } from '../taker.ts';

/** The connection that it comes on. */
interface Flow {
  pause(): void;
  resume(): void;
  destroy(error: Error): void;
}

interface Reading {
  readonly to: Taker<Buffer>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** The answer to a request, from its head on. Its body is read once. */
export class Answer {
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterMs: number | undefined;
  /** Something of its body has come. */
  begun = false;
  readonly #connection: Flow;
  /** Copies of what came while nobody took it. */
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #reading: Reading | undefined;
  /** What was taken is on its way, and what comes has to wait. */
  #waits = false;
  #ended = false;
  #error: Error | undefined;
  /** Set: what comes is thrown away, and if it has not ended until then, the connection is given up. */
  #tail: NodeJS.Timeout | undefined;

  constructor({ status, contentType, retryAfterMs }: AnswerHead, connection: Flow) {
    this.status = status;
    this.contentType = contentType;
    this.retryAfterMs = retryAfterMs;
    this.#connection = connection;
  }

  /**
   * Reads the body when it is all there. Its memory is used again once `read` has returned: what comes in one piece is
   * read where it lies. Throws RangeError above `bytesMax`, Error when it is cut.
   */
  async whole<T>(bytesMax: number, read: (body: Buffer) => T): Promise<T> {
    const pieces: Buffer[] = [];
    let sizeBytes = 0;
    let value: Promise<T> | undefined;
    let own = 0;
    const take = (piece: Buffer): void => {
      sizeBytes += piece.length;
      if (sizeBytes > bytesMax) throw new RangeError(`more than ${bytesMax} bytes`);
      pieces.push(piece);
    };
    const flush = (): undefined => {
      const whole = this.#ended && this.#error === undefined;
      // A promise takes what it throws: that is the caller's, and no fault of the connection.
      if (whole) value ??= new Promise((resolve) => resolve(read(joined(pieces))));
      else for (let i = own; i < pieces.length; i++) pieces[i] = Buffer.from(pieces[i] as Buffer);
      own = pieces.length;
    };
    await this.read({ take, flush });
    return await (value ?? read(joined(pieces)));
  }

  /**
   * Gives the pieces of the body as they come; their memory is used again for the next ones. Resolves at the end, or
   * after `finish`. Throws Error when it is cut, or what the taker throws.
   */
  read(to: Taker<Buffer>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#reading = { to, resolve, reject };
      this.#giveKept();
    });
  }

  /** Nobody wants what is left of it. */
  close(): void {
    if (!this.#ended) this.#connection.destroy(new Error('the answer was given up'));
  }

  /** Nobody wants what is left of it, which is little: the connection is kept if it ends within `ms`. */
  finish(ms: number): void {
    if (!this.#ended) this.#tail = setTimeout(() => this.close(), ms);
  }

  /** For the connection. */
  add(piece: Buffer): void {
    this.begun = true;
    if (this.#tail !== undefined) return;
    if (this.#reading !== undefined && !this.#waits) {
      this.#reading.to.take(piece);
      return;
    }
    this.#kept.push(Buffer.from(piece));
    this.#keptBytes += piece.length;
    // The engine waits until somebody takes it.
    if (this.#keptBytes > ENGINE_READ_AHEAD_BYTES_MAX) this.#connection.pause();
  }

  /** For the connection: that was all of a read. */
  flush(): void {
    if (this.#waits) return;
    const until = this.#reading?.to.flush();
    if (until === undefined) this.#settle();
    else void this.#wait(until);
  }

  async #wait(until: Promise<void>): Promise<void> {
    this.#waits = true;
    const error = await until.then(
      () => undefined,
      (error: Error) => error,
    );
    this.#waits = false;
    if (error === undefined) this.#giveKept();
    else this.#giveUp(error);
  }

  /** For the connection. */
  end(error?: Error): void {
    clearTimeout(this.#tail);
    this.#ended = true;
    this.#error ??= error;
    this.flush();
  }

  #giveKept(): void {
    const kept = this.#kept;
    [this.#kept, this.#keptBytes] = [[], 0];
    try {
      for (const piece of kept) this.#reading?.to.take(piece);
    } catch (error) {
      this.#giveUp(error as Error);
      return;
    }
    if (!this.#ended) this.#connection.resume();
    if (kept.length > 0) this.flush();
    else this.#settle();
  }

  #giveUp(error: Error): void {
    this.#error = error;
    if (this.#ended) this.flush();
    else this.#connection.destroy(error);
  }

  #settle(): void {
    if (this.#tail !== undefined) this.#reading?.resolve();
    else if (this.#ended && this.#error !== undefined) this.#reading?.reject(this.#error);
    else if (this.#ended) this.#reading?.resolve();
  }
}

const joined = (pieces: readonly Buffer[]): Buffer =>
  pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
