import type { ServiceImpl } from '@connectrpc/connect';
import type { TrajectoryService } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { ReconstructorContext } from '../context.ts';
import { checkName, noConsumer } from '../cursors/named-consumer.ts';
import { consumerRemoved } from '../events.ts';

export const deleteConsumer = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'deleteConsumer'> => ({
  async deleteConsumer({ consumer }, { signal }) {
    checkName(consumer);
    if ((await ctx.cursors.get(consumer, signal)) === undefined) throw noConsumer(consumer);
    await ctx.cursors.delete(consumer, signal);
    consumerRemoved(ctx.log, consumer);
    return {};
  },
});
