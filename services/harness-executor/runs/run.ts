// What a run is asked for.
import type { AttemptRef, RunWork } from '../../../gen/ts/polar/event/v1/work_pb.js';

export interface Run {
  readonly ref: AttemptRef;
  readonly work: RunWork;
  /** It was given to an executor before, which may have begun it. */
  readonly again: boolean;
}
