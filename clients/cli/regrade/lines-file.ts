// The file of rewards: a line for each session, added when it is there. A command that was cut goes on behind what is whole.
import { appendFileSync, readFileSync, truncateSync } from 'node:fs';
import { claimFile } from '../../../services/common/claim.ts';
import { PolarError } from '../../../services/common/errors.ts';
import type { Regraded } from './regrade.ts';

/** Rewards that are in the file, those of one evaluator. */
export class LinesFile implements AsyncDisposable {
  readonly #file: string;
  readonly #claimed: AsyncDisposable;
  readonly #rows: ReadonlyMap<string, Regraded>;

  private constructor(file: string, claimed: AsyncDisposable, rows: readonly Regraded[]) {
    this.#file = file;
    this.#claimed = claimed;
    this.#rows = new Map(rows.map((row) => [keyOf(row.session_id, row.attempt), row]));
  }

  /**
   * For one command at a time: two would grade each session twice. Throws INVALID_REQUEST where another one has it, where it
   * has rewards by another evaluator or is another file, and where it cannot be written.
   */
  static async open(file: string, evaluatorSha256: string | null): Promise<LinesFile> {
    const claimed = await claimFile(file).catch((error: Error) => {
      throw invalid(file, `cannot be written: ${error.message}`);
    });
    if (claimed === undefined)
      throw invalid(file, 'is being written by another command: wait for its end, or name another file');
    try {
      return new LinesFile(file, claimed, rowsOf(file, evaluatorSha256));
    } catch (error) {
      await claimed[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Undefined where the session is not in it, or with an attempt that does not count any more. */
  of(sessionId: string, attempt: number): Regraded | undefined {
    return this.#rows.get(keyOf(sessionId, attempt));
  }

  add(row: Regraded): void {
    append(this.#file, `${JSON.stringify(row)}\n`);
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#claimed[Symbol.asyncDispose]();
  }
}

/** What is whole in it, and cuts off the rest. */
function rowsOf(file: string, evaluatorSha256: string | null): Regraded[] {
  const text = read(file);
  // What a kill has cut off.
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const rows = whole
    .split('\n')
    .flatMap((line, i) => (line.trim() === '' ? [] : [parsed(file, line, i + 1)]));
  if (rows.some((row) => row.evaluator_sha256 !== evaluatorSha256)) {
    throw invalid(file, 'has rewards by another evaluator: name another file');
  }
  if (whole.length < text.length) truncateSync(file, Buffer.byteLength(whole));
  return rows;
}

/** Its text; where it is not there, it is made, so that it is known now whether it can be written. */
function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') throw invalid(file, `cannot be read: ${message}`);
    append(file, '');
    return '';
  }
}

function parsed(file: string, line: string, number: number): Regraded {
  try {
    const row = JSON.parse(line) as Regraded | null;
    if (typeof row?.session_id === 'string' && typeof row.reward === 'number') return row;
  } catch {
    // Told as any other line that is none.
  }
  throw invalid(file, `has something else than rewards in line ${number}: name another file`);
}

function append(file: string, text: string): void {
  try {
    appendFileSync(file, text);
  } catch (error) {
    throw invalid(file, `cannot be written: ${(error as Error).message}`);
  }
}

const invalid = (file: string, why: string): PolarError =>
  new PolarError('INVALID_REQUEST', `${file} ${why}`);

const keyOf = (sessionId: string, attempt: number): string => `${sessionId}.${attempt}`;
