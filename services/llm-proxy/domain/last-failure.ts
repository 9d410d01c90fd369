// What the last record tells about the last call, where nothing newer is known.
import type { Failure } from '../../../gen/ts/polar/common/v1/failure_pb.js';
import { failure, REASONS, type Reason } from '../../common/errors.ts';

/** The failure behind a record's error reason, if it was one of infrastructure. */
export function lastFailureOf(errorReason: string): Failure | undefined {
  if (!(errorReason in REASONS)) return undefined;
  const found = failure(errorReason as Reason, 'the last recorded model call failed');
  return found.infrastructure ? found : undefined;
}
