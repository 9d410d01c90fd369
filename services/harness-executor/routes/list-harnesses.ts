// ListHarnesses: the adapters, and whether this node has what they need.
import type { ServiceImpl } from '@connectrpc/connect';
import type { HarnessService } from '../../../gen/ts/polar/harness_executor/v1/harness_executor_service_pb.js';
import { ADAPTERS } from '../adapters/index.ts';
import type { HarnessExecutorContext } from '../context.ts';
import { isInstalledForSome } from '../installs/install.ts';

export function listHarnesses({
  config,
}: HarnessExecutorContext): Pick<ServiceImpl<typeof HarnessService>, 'listHarnesses'> {
  return {
    listHarnesses: async () => ({
      harnesses: await Promise.all(
        Object.values(ADAPTERS).map(async (adapter) => ({
          name: adapter.name,
          version: adapter.version,
          dialect: adapter.dialect,
          installed: await isInstalledForSome(config.node.cache_dir, adapter),
        })),
      ),
    }),
  };
}
