// A file of recorded calls, one a line, to calls by session. What cannot be read is named and left out; the rest stands.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import process from 'node:process';
import { PolarError } from '../../common/errors.ts';
import { parseLenient } from '../../common/lenient-json.ts';
import { type CallFault, CallLog } from '../domain/call-log.ts';

/** As the name of a file. */
const STANDARD_INPUT = '-';

/** Calls of sessions, one session after another. */
export interface CallsSource {
  readonly sessions: AsyncIterable<SessionCalls>;
  /** Sessions that are known of so far. */
  readonly count: number;
  /** Lines that were left out; all of them when the last session has come. */
  readonly faults: readonly LineFault[];
}

/** The calls of a session, or why they cannot be had. */
export type SessionCalls = {
  /** Undefined where lines name none. */
  readonly sessionId: string | undefined;
} & ({ readonly log: CallLog } | { readonly lost: PolarError });

/** A line that was left out, or that was not needed. */
export interface LineFault {
  /** From 1. */
  readonly line: number;
  readonly sessionId?: string;
  readonly kind: CallFault['kind'] | 'unreadable' | 'torn';
  readonly why: string;
}

/**
 * The sessions of a file, whose lines may come in any order: it is read whole before the first one comes. Throws
 * INVALID_REQUEST where it cannot be read at all. `onProgress` gets the share that is read.
 */
export function callsOfFile(
  file: string,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): CallsSource {
  const sessions = new Map<string | undefined, CallLog>();
  const faults: LineFault[] = [];
  return {
    faults,
    get count() {
      return sessions.size;
    },
    sessions: (async function* () {
      await readFile(file, { sessions, faults }, onProgress, signal);
      for (const [sessionId, log] of sessions) yield { sessionId, log };
    })(),
  };
}

interface CallsRead {
  /** In the order of their first lines. */
  readonly sessions: Map<string | undefined, CallLog>;
  readonly faults: LineFault[];
}

async function readFile(
  file: string,
  { sessions, faults }: CallsRead,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<void> {
  let [line, read] = [0, 0];
  try {
    const size = file === STANDARD_INPUT ? Number.POSITIVE_INFINITY : (await stat(file)).size;
    for await (const { text, ended } of linesOf(file, signal)) {
      line++;
      read += Buffer.byteLength(text) + 1;
      onProgress(Math.min(1, read / size));
      if (text.trim() === '') continue;
      const fault = take(sessions, text);
      if (fault === undefined) continue;
      // A line that breaks off at the end of the file was being written as the writer ended.
      const torn = fault.kind === 'unreadable' && !ended;
      faults.push(torn ? { line, kind: 'torn', why: 'the file breaks off in it' } : { line, ...fault });
    }
  } catch (error) {
    if (signal.aborted || error instanceof PolarError) throw error;
    throw new PolarError('INVALID_REQUEST', `${file} cannot be read: ${(error as Error).message}`);
  }
}

async function* linesOf(
  file: string,
  signal: AbortSignal,
): AsyncGenerator<{ readonly text: string; readonly ended: boolean }> {
  const parts: string[] = [];
  const options = { encoding: 'utf8', signal, highWaterMark: 1 << 20 } as const;
  const chunks =
    file === STANDARD_INPUT ? process.stdin.setEncoding('utf8') : createReadStream(file, options);
  let isFirst = true;
  for await (const chunk of chunks) {
    // Some programs begin a file with a mark.
    const text = isFirst ? (chunk as string).replace(/^\ufeff/, '') : (chunk as string);
    isFirst = false;
    const [first = '', ...rest] = text.split('\n');
    parts.push(first);
    for (const next of rest) {
      yield { text: parts.join(''), ended: true };
      parts.length = 0;
      parts.push(next);
    }
  }
  const last = parts.join('');
  if (last !== '') yield { text: last, ended: false };
}

type Fault = Omit<LineFault, 'line'>;

function take(sessions: Map<string | undefined, CallLog>, text: string): Fault | undefined {
  const value = parsed(text);
  if (value === undefined) return { kind: 'unreadable', why: 'it is no JSON object' };
  const sessionId = value['session_id'];
  if (sessionId !== undefined && typeof sessionId !== 'string') {
    return { kind: 'invalid', why: 'session_id must be a text' };
  }
  let log = sessions.get(sessionId);
  if (log === undefined) {
    log = new CallLog();
    sessions.set(sessionId, log);
  }
  const fault = log.add(value);
  return fault && { ...fault, ...(sessionId !== undefined && { sessionId }) };
}

function parsed(text: string): Record<string, unknown> | undefined {
  const value = parseLenient(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return value;
}
