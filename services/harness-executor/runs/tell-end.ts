// The end of a run, told to the scheduler.
import type { AttemptRef } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { type FactOptions, publishFact } from '../../common/nats/facts.ts';
import type { HarnessExecutorContext } from '../context.ts';
import * as events from '../events.ts';
import type { RunEnd } from './run-harness.ts';
import { untilStored } from './until-stored.ts';

/** Stored when it returns. A run cannot be done again: where its end is not told, its next delivery finds it lost. */
export async function tellEnd(
  { bus, blobs, log }: HarnessExecutorContext,
  ref: AttemptRef,
  end: RunEnd,
  durationMs: number,
  signal: AbortSignal,
): Promise<void> {
  const kind: FactOptions['kind'] =
    'ran' in end
      ? { case: 'ran', value: end.ran }
      : { case: 'failed', value: { failure: end.failed, stage: 'run' } };
  await untilStored(
    () => publishFact(bus, blobs, { ref, kind, durationMs, denied: end.denied, signal }),
    (error) => events.endNotTold(log, ref, error),
    signal,
  );
}
