// What the evaluator has to say: one function, one line.
import type { AttemptRef } from '../../gen/ts/polar/event/v1/work_pb.js';
import type { Logger } from '../common/logger.ts';

const of = ({ sessionId, attempt, taskId }: AttemptRef): object => ({
  session_id: sessionId,
  attempt,
  task_id: taskId,
});

export const evaluated = (log: Logger, ref: AttemptRef, end: { reward: number; duration_ms: number }): void =>
  log.info({ ...of(ref), ...end }, 'session evaluated');

export const evaluationFailed = (log: Logger, ref: AttemptRef, reason: string, message: string): void =>
  log.warn({ ...of(ref), reason, problem: message }, 'evaluation failed');
