// What the evaluator has to say: one function, one line; and what is counted of it.
import type { AttemptRef } from '../../gen/ts/polar/event/v1/work_pb.js';
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
