// The RPCs of runtime-prewarm, one file each.
import type { ConnectRouter } from '@connectrpc/connect';
import { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import type { RuntimePrewarmContext } from '../context.ts';
import { acquireRuntime } from './acquire-runtime.ts';
import { exec } from './exec.ts';
import { getFile } from './get-file.ts';
import { limitExec } from './limit-exec.ts';
import { listRuntimes } from './list-runtimes.ts';
import { putFiles } from './put-files.ts';
import { releaseRuntime } from './release-runtime.ts';
import { renewLease } from './renew-lease.ts';

export function routes(router: ConnectRouter, ctx: RuntimePrewarmContext): void {
  router.service(RuntimeService, {
    ...acquireRuntime(ctx),
    ...renewLease(ctx),
    ...exec(ctx),
    ...limitExec(ctx),
    ...putFiles(ctx),
    ...getFile(ctx),
    ...releaseRuntime(ctx),
    ...listRuntimes(ctx),
  });
}
