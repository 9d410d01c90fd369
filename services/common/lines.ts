// Lines to a file descriptor, written together: a write costs as much as ten lines. pino's own way to do so never ends a
// process whose reader is gone (sonic-boom tries a broken pipe again for ever at the exit).
import { write, writeSync } from 'node:fs';
import process from 'node:process';
import { LOG_END_MS, LOG_WAITING_CHARS_MAX } from './limits.ts';

/** Lines wait for each other so long, or until they are so many. */
const WAIT_MS = 100;
const WAIT_CHARS = 32_768;
/** Until a full pipe is tried again, or a file whose disk is full. */
const AGAIN_MS = 10;
const FULL_AGAIN_MS = 200;
const PAUSES: Readonly<Record<string, number>> = {
  EAGAIN: AGAIN_MS,
  ENOSPC: FULL_AGAIN_MS,
  EDQUOT: FULL_AGAIN_MS,
};

export class Lines {
  readonly #fd: number;
  #waiting = '';
  #dropped = 0;
  /** On its way, in part or as a whole. */
  #sent: Buffer = Buffer.alloc(0);
  #writing = false;
  #broken = false;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Immediate | undefined;

  constructor(fd: number) {
    this.#fd = fd;
    process.on('exit', () => this.#end());
  }

  /** `line` with its end. Nothing waits for the reader: what it leaves waiting above LOG_WAITING_CHARS_MAX is dropped, and counted. */
  add(line: string, now: boolean): void {
    if (this.#broken) return;
    if (this.#waiting.length + line.length > LOG_WAITING_CHARS_MAX) {
      this.#dropped++;
      return;
    }
    this.#waiting += line;
    // Not at once: a process that ends in the same turn writes all of it in order, and none of it is on its way.
    if (now || this.#waiting.length >= WAIT_CHARS) this.#soon ??= setImmediate(() => this.#flush());
    else this.#timer ??= setTimeout(() => this.#flush(), WAIT_MS).unref();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#soon);
    this.#timer = undefined;
    this.#soon = undefined;
    if (this.#writing || this.#broken) return;
    if (this.#sent.length === 0) this.#take();
    if (this.#sent.length === 0) return;
    this.#writing = true;
    write(this.#fd, this.#sent, (error, sizeBytes) => {
      this.#writing = false;
      this.#sent = this.#sent.subarray(sizeBytes ?? 0);
      const pauseMs = PAUSES[error?.code ?? ''];
      if (error === null) this.#flush();
      else if (pauseMs === undefined) this.#give();
      else this.#timer ??= setTimeout(() => this.#flush(), pauseMs).unref();
    });
  }

  #take(): void {
    this.#sent = Buffer.from(this.#waiting);
    this.#waiting = '';
    if (this.#dropped === 0) return;
    this.#waiting = `${JSON.stringify({ level: 'warn', lines: this.#dropped, msg: 'log lines dropped' })}\n`;
    this.#dropped = 0;
  }

  /** Nobody reads any more. */
  #give(): void {
    this.#broken = true;
    this.#waiting = '';
    this.#sent = Buffer.alloc(0);
  }

  /** What is left, for LOG_END_MS at most. */
  #end(): void {
    // What is on its way arrives by itself, and first where its thread gets a moment.
    if (this.#writing) pause();
    let rest = Buffer.concat([...(this.#writing ? [] : [this.#sent]), Buffer.from(this.#waiting)]);
    const until = performance.now() + LOG_END_MS;
    while (rest.length > 0 && !this.#broken && performance.now() < until) {
      try {
        rest = rest.subarray(writeSync(this.#fd, rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        pause();
      }
    }
  }
}

/** Of the whole process, whose loop has ended. */
const pause = (): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, AGAIN_MS);
