// Stored calls to traces, with any builder and without a mesh: what can be built is built, the rest is named and counted.
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { asPolarError, PolarError } from '../../common/errors.ts';
import type { CallLog } from '../domain/call-log.ts';
import { traceFields } from '../domain/export.ts';
import type { Builder } from '../strategies/build-with.ts';
import { type CallsRead, readCalls } from './read-calls.ts';
import { Report } from './report.ts';

export interface RebuildOptions {
  readonly builder: Builder;
  /** The file to read. */
  readonly calls: string;
  /** The file to write; it is there when all of it is. */
  readonly traces: string;
  readonly onProgress: (text: string) => void;
}

/** Throws INVALID_REQUEST where the calls cannot be read at all, or the traces not be written. */
export async function rebuild(options: RebuildOptions, signal: AbortSignal): Promise<Report> {
  const { builder, calls, traces, onProgress } = options;
  const tellRead = (share: number): void => onProgress(`read ${Math.floor(share * 100)} %`);
  const read = await readCalls(calls, tellRead, signal);
  const report = new Report(builder.name, read);
  const part = `${traces}.part`;
  try {
    const lines = Readable.from(linesOf(read, builder, report, onProgress, signal), { objectMode: true });
    await pipeline(lines, createWriteStream(part), { signal });
    await rename(part, traces);
  } catch (error) {
    await rm(part, { force: true });
    if (signal.aborted || error instanceof PolarError) throw error;
    throw new PolarError('INVALID_REQUEST', `${traces} cannot be written: ${(error as Error).message}`);
  }
  return report;
}

async function* linesOf(
  { sessions }: CallsRead,
  builder: Builder,
  report: Report,
  onProgress: (text: string) => void,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let done = 0;
  for (const [sessionId, log] of sessions) {
    yield* ofSession(sessionId, log, builder, report, signal);
    onProgress(`built ${++done} of ${sessions.size} sessions`);
  }
}

/** A session that cannot be built is counted, and the others go on. */
async function* ofSession(
  sessionId: string | undefined,
  log: CallLog,
  builder: Builder,
  report: Report,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const startedAt = performance.now();
  try {
    const built = await builder.build(log.calls, signal);
    report.built(built, log, performance.now() - startedAt);
    for (const trace of built.traces) {
      const id = sessionId !== undefined && { session_id: sessionId };
      yield `${JSON.stringify({ ...id, ...traceFields(trace) })}\n`;
    }
  } catch (error) {
    signal.throwIfAborted();
    report.failed(sessionId, log, asPolarError(error));
  }
}
