// The completion records of an attempt, whole or not at all.
import type { Completion } from '../../../gen/ts/polar/event/v1/completion_pb.js';
import { PolarError } from '../../common/errors.ts';
import { readCompletion } from '../../common/nats/records.ts';
import type { EvaluatorContext } from '../context.ts';
import { wholeRecords } from '../domain/calls.ts';
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
