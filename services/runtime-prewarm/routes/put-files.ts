// PutFiles: files into a sandbox.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import type { RuntimePrewarmContext } from '../context.ts';
import { fileOf } from '../domain/paths.ts';
import { orBroken } from '../runtimes/broken.ts';

export function putFiles(ctx: RuntimePrewarmContext): Pick<ServiceImpl<typeof RuntimeService>, 'putFiles'> {
  return {
    async putFiles({ runtimeId, files }) {
      const runtime = ctx.runtimes.get(runtimeId);
      await orBroken(runtime.putFiles(files.map(fileOf)));
      return {};
    },
  };
}
