import type { ServiceImpl } from '@connectrpc/connect';
import type { TrajectoryService } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { faulty } from '../../common/config/faults.ts';
import { PolarError } from '../../common/errors.ts';
import { UNACKED_BATCHES_MAX } from '../../common/limits.ts';
import type { ReconstructorContext } from '../context.ts';
import { acked, CONSUMER_PATTERN, floorOf } from '../domain/cursor.ts';

export const ackTrajectories = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'ackTrajectories'> => ({
  async ackTrajectories({ consumer, batchIds }, { signal }) {
    if (batchIds.length > UNACKED_BATCHES_MAX) {
      const description = `must be at most ${UNACKED_BATCHES_MAX}`;
      throw faulty('INVALID_REQUEST', 'AckTrajectories', [{ field: 'batch_ids', description }]);
    }
    const unknown = new PolarError('NOT_FOUND', `no consumer ${consumer}: it is made by its first stream`);
    if (!CONSUMER_PATTERN.test(consumer)) throw unknown;
    const cursor = await ctx.cursors.update(
      consumer,
      (known) => {
        if (known === undefined) throw unknown;
        return acked(known, batchIds);
      },
      signal,
    );
    return { floor: floorOf(cursor) };
  },
});
