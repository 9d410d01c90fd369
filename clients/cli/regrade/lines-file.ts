// The file of rewards: a line for each session, added when it is there. A command that was cut goes on behind what is whole.
import { appendFileSync, readFileSync, truncateSync } from 'node:fs';
import { PolarError } from '../../../services/common/errors.ts';
import type { Regraded } from './regrade.ts';

/** Rewards that are in the file, those of this evaluator: of another one it throws INVALID_REQUEST. */
export class LinesFile {
  readonly #file: string;
  readonly #rows: ReadonlyMap<string, Regraded>;

  constructor(file: string, evaluatorSha256: string | null) {
    this.#file = file;
    const text = this.#read();
    // What a kill has cut off.
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    const rows = whole
      .split('\n')
      .flatMap((line, i) => (line.trim() === '' ? [] : [this.#parsed(line, i + 1)]));
    this.#rows = new Map(rows.map((row) => [keyOf(row.session_id, row.attempt), row]));
    if (rows.some((row) => row.evaluator_sha256 !== evaluatorSha256)) {
      throw this.#invalid('has rewards by another evaluator: name another file');
    }
    if (whole.length < text.length) truncateSync(file, Buffer.byteLength(whole));
  }

  /** Undefined where the session is not in it, or with an attempt that does not count any more. */
  of(sessionId: string, attempt: number): Regraded | undefined {
    return this.#rows.get(keyOf(sessionId, attempt));
  }

  add(row: Regraded): void {
    this.#attempt(() => appendFileSync(this.#file, `${JSON.stringify(row)}\n`));
  }

  #read(): string {
    try {
      return readFileSync(this.#file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT')
        this.#attempt(() => appendFileSync(this.#file, ''));
      else throw this.#invalid(`cannot be read: ${(error as Error).message}`);
      return '';
    }
  }

  #parsed(line: string, number: number): Regraded {
    try {
      const row = JSON.parse(line) as Regraded | null;
      if (typeof row?.session_id === 'string' && typeof row.reward === 'number') return row;
    } catch {
      // Told as any other line that is none.
    }
    throw this.#invalid(`has something else than rewards in line ${number}: name another file`);
  }

  #attempt(write: () => void): void {
    try {
      write();
    } catch (error) {
      throw this.#invalid(`cannot be written: ${(error as Error).message}`);
    }
  }

  #invalid(why: string): PolarError {
    return new PolarError('INVALID_REQUEST', `${this.#file} ${why}`);
  }
}

const keyOf = (sessionId: string, attempt: number): string => `${sessionId}.${attempt}`;
