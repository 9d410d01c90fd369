import type { ServiceImpl } from '@connectrpc/connect';
import type { TrajectoryService } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { faulty } from '../../common/config/faults.ts';
import type { FieldFault } from '../../common/errors.ts';
import { UNACKED_BATCHES_DEFAULT, UNACKED_BATCHES_MAX } from '../../common/limits.ts';
import type { ReconstructorContext } from '../context.ts';
import { CONSUMER_PATTERN } from '../domain/cursor.ts';

export const streamTrajectories = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'streamTrajectories'> => ({
  async *streamTrajectories({ consumer, maxUnacked, taskId }, { signal }) {
    const faults: FieldFault[] = [];
    if (!CONSUMER_PATTERN.test(consumer)) {
      faults.push({ field: 'consumer', description: 'must be 1 to 32 of [a-z0-9-]' });
    }
    if (maxUnacked > UNACKED_BATCHES_MAX) {
      faults.push({ field: 'max_unacked', description: `must be 1 to ${UNACKED_BATCHES_MAX}` });
    }
    if (faults.length > 0) throw faulty('INVALID_REQUEST', 'StreamTrajectories', faults);
    const request = { consumer, maxUnacked: maxUnacked || UNACKED_BATCHES_DEFAULT, taskId };
    for await (const batch of ctx.streams.open(request, signal)) yield batch === undefined ? {} : { batch };
  },
});
