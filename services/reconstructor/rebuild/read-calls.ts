// A file of recorded calls, one a line, to calls by session. What cannot be read is named and left out; the rest stands.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { PolarError } from '../../common/errors.ts';
import { type CallFault, CallLog } from '../domain/call-log.ts';

/** A line that was left out, or that was not needed. */
export interface LineFault {
  /** From 1. */
  readonly line: number;
  readonly sessionId?: string;
  readonly kind: CallFault['kind'] | 'unreadable' | 'torn';
  readonly why: string;
}

/** What a file holds. */
export interface CallsRead {
  /** By session id, in the order of their first lines; undefined where lines name none. */
  readonly sessions: ReadonlyMap<string | undefined, CallLog>;
  readonly faults: readonly LineFault[];
}

/** Throws INVALID_REQUEST where the file cannot be read at all. `onProgress` gets the share that is read. */
export async function readCalls(
  file: string,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<CallsRead> {
  const sessions = new Map<string | undefined, CallLog>();
  const faults: LineFault[] = [];
  let [line, read] = [0, 0];
  try {
    const { size } = await stat(file);
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
  return { sessions, faults };
}

async function* linesOf(
  file: string,
  signal: AbortSignal,
): AsyncGenerator<{ readonly text: string; readonly ended: boolean }> {
  const parts: string[] = [];
  for await (const chunk of createReadStream(file, { encoding: 'utf8', signal, highWaterMark: 1 << 20 })) {
    const [first = '', ...rest] = (chunk as string).split('\n');
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

/** NaN and Infinity, which some writers put into JSON, are holes: null. */
const NOT_A_NUMBER = /(?<=[[,:]\s*)-?(?:NaN|Infinity)(?=\s*[,\]}])/g;

function parsed(text: string): Record<string, unknown> | undefined {
  for (const form of [text, text.replace(NOT_A_NUMBER, 'null')]) {
    try {
      const value: unknown = JSON.parse(form);
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
      return value as Record<string, unknown>;
    } catch {
      // The other form may do.
    }
  }
  return undefined;
}
