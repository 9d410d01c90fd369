// The harness executor's RPCs, one file each.
import type { ConnectRouter } from '@connectrpc/connect';
import { HarnessService } from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import type { HarnessExecutorContext } from '../context.ts';
import { getSessionArtifact } from './get-session-artifact.ts';
import { getSessionLogs } from './get-session-logs.ts';
import { listHarnesses } from './list-harnesses.ts';
import { listSessionArtifacts } from './list-session-artifacts.ts';

export function routes(router: ConnectRouter, ctx: HarnessExecutorContext): void {
  router.service(HarnessService, {
    ...listHarnesses(ctx),
    ...getSessionLogs(ctx),
    ...listSessionArtifacts(ctx),
    ...getSessionArtifact(ctx),
  });
}
