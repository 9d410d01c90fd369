import type { ServiceImpl } from '@connectrpc/connect';
import type { TrajectoryService } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { ReconstructorContext } from '../context.ts';
import { changeCursor, checkCount, checkTask } from '../cursors/named-consumer.ts';
import { acked, floorOf } from '../domain/cursor.ts';

export const ackTrajectories = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'ackTrajectories'> => ({
  async ackTrajectories({ consumer, batchIds, seeks }, { signal }) {
    checkCount('AckTrajectories', batchIds);
    await checkTask(ctx, consumer, batchIds, signal);
    const cursor = await changeCursor(ctx, consumer, (known) => acked(known, batchIds, seeks), signal);
    return { floor: floorOf(cursor), policyVersion: ctx.policy.current, seeks: cursor.seeks };
  },
});
