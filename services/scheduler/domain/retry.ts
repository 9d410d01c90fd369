// Which ended sessions go again on request.
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { RetryOnly } from '../../../gen/ts/polar/scheduler/v1/scheduler_service_pb.js';
import { isEnded, Outcome, sessionOf } from './session.ts';

export function goesAgain(record: SessionRecord, only: RetryOnly): boolean {
  if (!isEnded(record)) return false;
  const { outcome, stats, failure } = sessionOf(record);
  switch (only) {
    case RetryOnly.FAILED:
      return outcome !== Outcome.COMPLETED && outcome !== Outcome.CANCELLED;
    case RetryOnly.MISSING:
      // A group that was stopped early has what it was to have.
      return stats === undefined && failure?.reason !== 'EARLY_STOPPED';
    default:
      return outcome === Outcome.INFRASTRUCTURE_ERROR;
  }
}
