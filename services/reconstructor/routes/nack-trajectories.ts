import type { ServiceImpl } from '@connectrpc/connect';
import type {
  NackTrajectoriesRequest,
  TrajectoryService,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import { faulty } from '../../common/config/faults.ts';
import type { FieldFault } from '../../common/errors.ts';
import type { ReconstructorContext } from '../context.ts';
import { letGoLater } from '../cursors/let-go.ts';
import { changeCursor, checkCount, checkTask } from '../cursors/named-consumer.ts';
import { NACK_DELAY_MAX_MS, NACK_REASON_CHARS_MAX, nacked, nackedCount } from '../domain/cursor.ts';
import { batchesNacked } from '../events.ts';

export const nackTrajectories = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'nackTrajectories'> => ({
  async nackTrajectories(request, { signal }) {
    const { consumer, batchIds, deliveryCounts, delayMs, reason } = request;
    check(request);
    await checkTask(ctx, consumer, batchIds, signal);
    const nack = { batchIds, deliveryCounts, delayMs: Number(delayMs), nowMs: Date.now(), reason };
    const cursor = await changeCursor(ctx, consumer, (known) => nacked(known, nack), signal);
    letGoLater(ctx, consumer, nack);
    batchesNacked(ctx.log, consumer, batchIds.length, Number(delayMs), reason);
    return { waiting: nackedCount(cursor) };
  },
});

/** Throws INVALID_REQUEST with every fault. */
function check({ batchIds, deliveryCounts, delayMs, reason }: NackTrajectoriesRequest): void {
  checkCount('NackTrajectories', batchIds);
  const faults: FieldFault[] = [];
  if (deliveryCounts.length > 0 && deliveryCounts.length !== batchIds.length) {
    faults.push({ field: 'delivery_counts', description: 'must be none, or as many as batch_ids' });
  }
  if (delayMs > NACK_DELAY_MAX_MS) {
    faults.push({ field: 'delay_ms', description: `must be at most ${NACK_DELAY_MAX_MS}` });
  }
  if (reason.length > NACK_REASON_CHARS_MAX) {
    faults.push({ field: 'reason', description: `must be at most ${NACK_REASON_CHARS_MAX} characters` });
  }
  if (faults.length > 0) throw faulty('INVALID_REQUEST', 'NackTrajectories', faults);
}
