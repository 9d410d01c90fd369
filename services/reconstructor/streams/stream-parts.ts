// What a stream of a consumer is asked for, and what it is made of.
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type {
  Layout,
  StreamFilter,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { Logger } from '../../common/logger.ts';
import type { Cursors } from '../cursors/cursors.ts';
import type { Credit } from '../domain/admission.ts';
import type { Batches } from './batches.ts';
import type { PolicyVersion } from './policy-version.ts';
import type { TrajectoryLog } from './trajectory-log.ts';

export interface StreamRequest {
  readonly consumer: string;
  /** Empty: all. */
  readonly taskId: string;
  readonly credit: Credit;
  /** Token ids up to which batches are put into one message; 0: one batch a message. */
  readonly messageTokens: number;
  readonly shared: boolean;
  readonly filter: StreamFilter | undefined;
  /** LAYOUT_TRACES or LAYOUT_COLUMNS. */
  readonly layout: Layout;
}

export interface StreamParts {
  readonly cursors: Cursors;
  readonly trajectories: TrajectoryLog;
  readonly batches: Batches;
  readonly policy: PolicyVersion;
  readonly log: Logger;
}

/** The cursor of a consumer that had one. Throws NOT_FOUND. */
export function present(cursor: Cursor | undefined, consumer: string): Cursor {
  if (cursor === undefined) throw new PolarError('NOT_FOUND', `consumer ${consumer} was deleted`);
  return cursor;
}
