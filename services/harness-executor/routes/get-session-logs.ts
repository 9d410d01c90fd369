// GetSessionLogs: what the harness of an attempt wrote, or has written so far.
import type { ServiceImpl } from '@connectrpc/connect';
import type { HarnessService } from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import { ID_PATTERN } from '../../common/ids.ts';
import type { HarnessExecutorContext } from '../context.ts';

export function getSessionLogs({
  logs,
}: HarnessExecutorContext): Pick<ServiceImpl<typeof HarnessService>, 'getSessionLogs'> {
  return {
    getSessionLogs: async ({ sessionId, attempt }) => {
      if (!ID_PATTERN.test(sessionId)) {
        const fields = [{ field: 'session_id', description: 'must be a session id' }];
        throw new PolarError('INVALID_REQUEST', `session_id ${JSON.stringify(sessionId)} is no session id`, {
          fields,
        });
      }
      return await logs.read(sessionId, attempt);
    },
  };
}
