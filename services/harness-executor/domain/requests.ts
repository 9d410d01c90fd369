// What requests have to look like.
import { PolarError } from '../../common/errors.ts';
import { ID_PATTERN } from '../../common/ids.ts';

/** An id becomes a file's name. Throws INVALID_REQUEST. */
export function checkSessionId(sessionId: string): void {
  if (ID_PATTERN.test(sessionId)) return;
  const fields = [{ field: 'session_id', description: 'must be a session id' }];
  throw new PolarError('INVALID_REQUEST', `session_id ${JSON.stringify(sessionId)} is no session id`, {
    fields,
  });
}
