// What the evaluator has to say: one function, one line; and what is counted of it.
import type { AttemptRef } from '../../gen/ts/polar/event/v1/work_pb.js';
import type { PolarError } from '../common/errors.ts';
import { attemptFields, type Logger } from '../common/logger.ts';
import * as metrics from './metrics.ts';

export function evaluated(log: Logger, ref: AttemptRef, end: { reward: number; duration_ms: number }): void {
  log.info({ ...attemptFields(ref), ...end }, 'session evaluated');
  metrics.evaluateSeconds.observe(end.duration_ms / 1_000);
}

export function evaluationFailed(log: Logger, ref: AttemptRef, reason: string, message: string): void {
  log.warn({ ...attemptFields(ref), reason, problem: message }, 'evaluation failed');
  metrics.evaluationsFailed.inc({ reason });
}

export function evaluatedAgain(
  log: Logger,
  ref: AttemptRef,
  end: { reward: number; duration_ms: number },
): void {
  log.info({ ...attemptFields(ref), ...end }, 'session evaluated again');
}

export function changesNotKept(log: Logger, ref: AttemptRef, error: PolarError): void {
  const { reason, message } = error;
  log.warn({ ...attemptFields(ref), reason, problem: message }, 'changes not kept: not to be graded again');
}
