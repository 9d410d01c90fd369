// GetFile: one file out of a sandbox.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import type { RuntimePrewarmContext } from '../context.ts';
import { orBroken } from '../runtimes/broken.ts';

export function getFile(ctx: RuntimePrewarmContext): Pick<ServiceImpl<typeof RuntimeService>, 'getFile'> {
  return {
    async getFile({ runtimeId, path }) {
      return { content: await orBroken(ctx.runtimes.get(runtimeId).getFile(path)) };
    },
  };
}
