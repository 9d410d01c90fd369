// The attempts of a session: all are kept, the older ones in few words, so that its record fits a message of the log however
// often it goes again.
import type { Attempt, Session } from '../../../gen/ts/polar/common/v1/session_pb.js';
import { PolarError } from '../../common/errors.ts';

/** Of one session, those of all its retries together; then it does not go again. */
export const ATTEMPTS_PER_SESSION_MAX = 500;
/** The newest are kept as they are: as many as one round of retries may have. */
const WHOLE = 10;
const MESSAGE_CHARS_MAX = 100;

/** Earlier attempts, as they stand before a new one. */
export const remembered = (attempts: readonly Attempt[]): Attempt[] =>
  attempts.map((attempt, i) => (i < attempts.length - WHOLE ? inShort(attempt) : attempt));

function inShort(attempt: Attempt): Attempt {
  const { failure, denied } = attempt;
  const isShort = (failure?.message.length ?? 0) <= MESSAGE_CHARS_MAX && (denied?.targets.length ?? 0) === 0;
  if (isShort) return attempt;
  return {
    ...attempt,
    ...(failure && { failure: { ...failure, message: failure.message.slice(0, MESSAGE_CHARS_MAX) } }),
    ...(denied && { denied: { ...denied, targets: [] } }),
  };
}

/**
 * Whether an attempt that was lost counts, to max_attempts and against its node: not where a service was stopped, which says
 * nothing of the session or of the node.
 */
export const isCounted = ({ failure }: Attempt): boolean => failure?.reason !== 'SHUTTING_DOWN';

/** Throws ATTEMPTS_LIMIT where a session cannot go again. */
export function checkAttempts({ sessionId, attempt }: Session): void {
  if (attempt < ATTEMPTS_PER_SESSION_MAX) return;
  throw new PolarError(
    'ATTEMPTS_LIMIT',
    `session ${sessionId} has had ATTEMPTS_PER_SESSION_MAX (${ATTEMPTS_PER_SESSION_MAX}) attempts: submit its task anew, under another task_id`,
  );
}
