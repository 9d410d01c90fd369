// ListRuntimes: what is leased, and which backends work.
import type { ServiceImpl } from '@connectrpc/connect';
import type { RuntimeService } from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { failureOf } from '../../common/errors.ts';
import type { RuntimePrewarmContext } from '../context.ts';
import { runtimeMessage } from '../domain/messages.ts';

export function listRuntimes(
  ctx: RuntimePrewarmContext,
): Pick<ServiceImpl<typeof RuntimeService>, 'listRuntimes'> {
  return {
    listRuntimes: () => ({
      runtimes: ctx.runtimes.list().map((runtime) => runtimeMessage(runtime, Date.now())),
      backends: ctx.backends.states.map((state) => ({
        name: state.name,
        isolates: state.isolates,
        ...('unavailable' in state
          ? { unavailable: failureOf(state.unavailable) }
          : { images: state.backend.images() }),
      })),
    }),
  };
}
