// Recorded calls to traces, with any builder: what can be built is built, the rest is named and counted.
import type { Trace } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { asPolarError } from '../../common/errors.ts';
import { writeWhole } from '../../common/whole-file.ts';
import { traceFields } from '../domain/export.ts';
import { rewardTraces } from '../domain/trace-rewards.ts';
import type { Builder } from '../strategies/build-with.ts';
import type { CallsSource, SessionCalls } from './read-calls.ts';
import { Report } from './report.ts';

export interface RebuildOptions {
  readonly builder: Builder;
  readonly source: CallsSource;
  /** The file to write, which is there when all of it is; undefined: nothing is written. */
  readonly traces: string | undefined;
  readonly onProgress: (text: string) => void;
}

/** Throws INVALID_REQUEST where the calls cannot be read at all, or the traces not be written. */
export async function rebuild(options: RebuildOptions, signal: AbortSignal): Promise<Report> {
  const { builder, source, traces } = options;
  const report = new Report(builder.name, source);
  const built = tracesOf(options, report, signal);
  if (traces === undefined) for await (const _ of built);
  else await writeWhole(traces, linesOf(built), signal);
  return report;
}

interface BuiltTrace {
  readonly sessionId: string | undefined;
  readonly trace: Trace;
}

async function* linesOf(built: AsyncIterable<BuiltTrace>): AsyncGenerator<string> {
  for await (const { sessionId, trace } of built) {
    const id = sessionId !== undefined && { session_id: sessionId };
    yield `${JSON.stringify({ ...id, ...traceFields(trace) })}\n`;
  }
}

async function* tracesOf(
  { source, builder, onProgress }: RebuildOptions,
  report: Report,
  signal: AbortSignal,
): AsyncGenerator<BuiltTrace> {
  let done = 0;
  for await (const session of source.sessions) {
    yield* ofSession(session, builder, report, signal);
    onProgress(`built ${++done} of ${source.count} sessions`);
  }
}

/** A session that cannot be built is counted, and the others go on. */
async function* ofSession(
  session: SessionCalls,
  builder: Builder,
  report: Report,
  signal: AbortSignal,
): AsyncGenerator<BuiltTrace> {
  const { sessionId } = session;
  if ('lost' in session) {
    report.failed(sessionId, 0, session.lost);
    return;
  }
  const { log } = session;
  const startedAt = performance.now();
  try {
    const built = await builder.build(log.calls, signal);
    report.built(built, log, performance.now() - startedAt);
    for (const trace of rewardTraces(built, log.rewards).traces) yield { sessionId, trace };
  } catch (error) {
    signal.throwIfAborted();
    report.failed(sessionId, log.calls.length, asPolarError(error));
  }
}
