// ListSessionArtifacts: the files of an attempt that are kept.
import type { ServiceImpl } from '@connectrpc/connect';
import type { HarnessService } from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import type { HarnessExecutorContext } from '../context.ts';
import { checkSessionId } from '../domain/requests.ts';

export function listSessionArtifacts({
  artifacts,
}: HarnessExecutorContext): Pick<ServiceImpl<typeof HarnessService>, 'listSessionArtifacts'> {
  return {
    listSessionArtifacts: async ({ sessionId, attempt }) => {
      checkSessionId(sessionId);
      const index = await artifacts.list(sessionId, attempt);
      const listed = index.artifacts.map((one) => ({ ...one, sizeBytes: BigInt(one.sizeBytes) }));
      return { attempt: index.attempt, artifacts: listed, problems: [...index.problems] };
    },
  };
}
