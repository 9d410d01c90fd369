// The completion records of an attempt, whole or not at all, and what was said in them.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { PolarError } from '../../common/errors.ts';
import { readCompletion } from '../../common/nats/records.ts';
import type { EvaluatorContext } from '../context.ts';
import { callLines, wholeRecords } from '../domain/calls.ts';
import type { Evaluation } from './evaluator.ts';

/** By index. Throws RECORDS_MISSING. */
export async function recordsOf(
  { records }: EvaluatorContext,
  { ref, work, stored }: Evaluation,
  signal: AbortSignal,
): Promise<Completion[]> {
  const range = work.calls ?? { calls: 0, firstSeq: 0n, lastSeq: 0n };
  const { sessionId, attempt } = ref;
  const found =
    stored === undefined
      ? await records.inRange(sessionId, attempt, range, signal, readCompletion)
      : await records.all(sessionId, attempt, signal);
  const whole = wholeRecords(found, range.calls);
  if (whole !== undefined) return whole;
  throw new PolarError(
    'RECORDS_MISSING',
    `the attempt has ${range.calls} records, ${found.length} were found`,
  );
}

/** Of what is said in them as JSON lines; above: FILE_TOO_LARGE. */
const CALLS_FILE_BYTES_MAX = 16 * 1024 * 1024;

/** A line each. `who` is to have them. Throws FILE_TOO_LARGE. */
export function callsOf(records: readonly Completion[], who: string): string[] {
  const lines = callLines(records);
  const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
  if (bytes <= CALLS_FILE_BYTES_MAX) return lines;
  throw new PolarError(
    'FILE_TOO_LARGE',
    `${who}: what was said in the session's calls has ${bytes} bytes, above CALLS_FILE_BYTES_MAX (${CALLS_FILE_BYTES_MAX})`,
  );
}
