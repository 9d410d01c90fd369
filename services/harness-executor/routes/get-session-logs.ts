// GetSessionLogs: what the harness of an attempt wrote, or has written so far.
import type { ServiceImpl } from '@connectrpc/connect';
import type { HarnessService } from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { HARNESS_LOG_EDGE_BYTES } from '../../common/limits.ts';
import type { HarnessExecutorContext } from '../context.ts';
import { checkSessionId } from '../domain/requests.ts';
import { unread } from '../domain/unread.ts';

export function getSessionLogs({
  logs,
}: HarnessExecutorContext): Pick<ServiceImpl<typeof HarnessService>, 'getSessionLogs'> {
  const rest = (kept: Uint8Array, size: bigint, offset: bigint): Uint8Array =>
    unread(kept, Number(size), Number(offset), HARNESS_LOG_EDGE_BYTES);
  return {
    getSessionLogs: async ({ sessionId, attempt, stdoutOffset, stderrOffset }) => {
      checkSessionId(sessionId);
      const log = await logs.read(sessionId, attempt);
      return {
        ...log,
        stdout: rest(log.stdout, log.stdoutSize, stdoutOffset),
        stderr: rest(log.stderr, log.stderrSize, stderrOffset),
      };
    },
  };
}
