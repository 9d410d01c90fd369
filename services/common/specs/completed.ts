// The evaluator `session_completed`, which asks for no more than how a run ended.
import type { JsonObject } from '@bufbuild/protobuf';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';

export const COMPLETED = 'session_completed';

/** 1 where the harness ended by itself with exit code 0, else 0. */
export function completedVerdict(outcome: Outcome): { reward: number; evaluation: JsonObject } {
  const completed = outcome === Outcome.COMPLETED;
  return { reward: completed ? 1 : 0, evaluation: { completed } };
}
