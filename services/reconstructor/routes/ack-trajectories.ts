import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import {
  type AckTrajectoriesRequest,
  AckTrajectoriesRequestSchema,
  AckTrajectoriesResponseSchema,
  TrajectoryService,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { ByteCall } from '../../common/byte-call.ts';
import { readRequest } from '../../common/request-faults.ts';
import type { ReconstructorContext } from '../context.ts';
import { changeCursor, checkCount, checkTask } from '../cursors/named-consumer.ts';
import { acked, floorOf } from '../domain/cursor.ts';
import { batchesAcked } from '../events.ts';

export const ackTrajectories = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'ackTrajectories'> => ({
  ackTrajectories: (request, { signal }) => answer(ctx, request, signal),
});

/** The same for callers by gRPC, or by Connect in binary form. */
export const ackBytes = (ctx: ReconstructorContext): ByteCall => ({
  path: `/${TrajectoryService.typeName}/${TrajectoryService.method.ackTrajectories.name}`,
  async answer(bytes, signal) {
    const request = readRequest(AckTrajectoriesRequestSchema, bytes);
    const message = create(AckTrajectoriesResponseSchema, await answer(ctx, request, signal));
    return toBinary(AckTrajectoriesResponseSchema, message);
  },
});

async function answer(
  ctx: ReconstructorContext,
  { consumer, batchIds, seeks }: AckTrajectoriesRequest,
  signal: AbortSignal,
): Promise<MessageInitShape<typeof AckTrajectoriesResponseSchema>> {
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
}
