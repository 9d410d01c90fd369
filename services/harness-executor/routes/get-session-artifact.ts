// GetSessionArtifact: one file of an attempt.
import type { ServiceImpl } from '@connectrpc/connect';
import type { HarnessService } from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import type { HarnessExecutorContext } from '../context.ts';
import { checkSessionId } from '../domain/requests.ts';

export function getSessionArtifact({
  artifacts,
}: HarnessExecutorContext): Pick<ServiceImpl<typeof HarnessService>, 'getSessionArtifact'> {
  return {
    getSessionArtifact: async ({ sessionId, attempt, path }) => {
      checkSessionId(sessionId);
      return { content: await artifacts.read(sessionId, attempt, path) };
    },
  };
}
