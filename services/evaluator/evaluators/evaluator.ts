// What the mesh has to know about an evaluator. One file each.
import type { JsonObject } from '@bufbuild/protobuf';
import type { BlobRef } from '../../../gen/ts/polar/common/v1/blob_pb.js';
import type { StoredChanges } from '../../../gen/ts/polar/event/v1/graded_pb.js';
import type { AttemptRef, EvaluateWork } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { EvaluatorName } from '../../common/specs/catalogue.ts';
import type { EvaluatorContext } from '../context.ts';

export interface Evaluation {
  readonly ref: AttemptRef;
  readonly work: EvaluateWork;
  /** What is left of the evaluate budget. */
  readonly remainingMs: () => number;
  readonly kept: Kept;
  /** Of a session that is graded again: what there is in the place of its sandbox, which is gone. */
  readonly stored?: Stored;
}

/** From one try to the next. */
export interface Kept {
  /** Of the evaluator that finds the outcome; set, it was found in an earlier try. */
  outcome: Verdict | undefined;
  /** Where what was read of the session's changes lies. */
  changes?: BlobRef | undefined;
}

export interface Stored {
  /** What was read of its changes when it ended. Throws NOTHING_TO_GRADE, BLOB_MISSING. */
  changes(signal: AbortSignal): Promise<StoredChanges>;
}

export interface Verdict {
  readonly reward: number;
  /** Told beside it. */
  readonly evaluation: JsonObject;
  /** Rewards of single traces, by a call of each; the others have the session's. */
  readonly traceRewards?: CallReward[];
}

export interface CallReward {
  readonly callId: string;
  readonly reward: number;
}

/** Calls that a verdict may reward; above: TRACE_REWARDS_INVALID. */
export const REWARDED_CALLS_MAX = 2048;

/** Throws TRACE_REWARDS_INVALID. */
export function checkRewarded(calls: number): void {
  if (calls <= REWARDED_CALLS_MAX) return;
  const message = `the session has ${calls} calls to reward, above REWARDED_CALLS_MAX (${REWARDED_CALLS_MAX})`;
  throw new PolarError('TRACE_REWARDS_INVALID', message);
}

export interface Evaluator {
  readonly name: EvaluatorName;
  /** One sentence. */
  readonly summary: string;
  /** Throws a PolarError where infrastructure or the task itself leaves no verdict: never a reward then. */
  evaluate(ctx: EvaluatorContext, evaluation: Evaluation, signal: AbortSignal): Promise<Verdict>;
}
