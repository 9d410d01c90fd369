// What the evaluator has to say: one function, one line.
import type { AttemptRef } from '../../gen/ts/polar/event/v1/work_pb.js';
import { attemptFields, type Logger } from '../common/logger.ts';

export const evaluated = (log: Logger, ref: AttemptRef, end: { reward: number; duration_ms: number }): void =>
  log.info({ ...attemptFields(ref), ...end }, 'session evaluated');

export const evaluationFailed = (log: Logger, ref: AttemptRef, reason: string, message: string): void =>
  log.warn({ ...attemptFields(ref), reason, problem: message }, 'evaluation failed');
