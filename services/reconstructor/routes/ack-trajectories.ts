import type { ServiceImpl } from '@connectrpc/connect';
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { TrajectoryService } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { ReconstructorContext } from '../context.ts';
import { changeCursor, checkCount, checkTask } from '../cursors/named-consumer.ts';
import { acked, floorOf } from '../domain/cursor.ts';
import { batchesAcked } from '../events.ts';

export const ackTrajectories = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'ackTrajectories'> => ({
  async ackTrajectories({ consumer, batchIds, seeks }, { signal }) {
    checkCount('AckTrajectories', batchIds);
    await checkTask(ctx, consumer, batchIds, signal);
    let newly = 0;
    const change = (known: Cursor): Cursor => {
      const next = acked(known, batchIds, seeks);
      newly = known.unacked.length - next.unacked.length;
      return next;
    };
    const cursor = await changeCursor(ctx, consumer, change, signal);
    batchesAcked(ctx.log, consumer, newly);
    return { floor: floorOf(cursor), policyVersion: ctx.policy.current, seeks: cursor.seeks };
  },
});
