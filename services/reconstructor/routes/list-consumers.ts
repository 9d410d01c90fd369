import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import type {
  ConsumerSchema,
  TrajectoryService,
} from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { ReconstructorContext } from '../context.ts';
import { ackedAboveFloor, floorOf, nackedCount } from '../domain/cursor.ts';
import { connectedStreams } from '../domain/members.ts';

export const listConsumers = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'listConsumers'> => ({
  async listConsumers(_request, { signal }) {
    const consumers: MessageInitShape<typeof ConsumerSchema>[] = [];
    for (const name of await ctx.cursors.names(signal)) {
      const cursor = await ctx.cursors.get(name, signal);
      if (cursor === undefined) continue;
      const unsent = await ctx.trajectories.pending(Number(cursor.sent), cursor.taskId, signal);
      const streams = connectedStreams(cursor, Date.now());
      consumers.push({
        name,
        floor: floorOf(cursor),
        ackedAboveFloor: ackedAboveFloor(cursor),
        pending: BigInt(unsent + cursor.unacked.length),
        connected: streams > 0,
        streams,
        nacked: nackedCount(cursor),
        droppedGroups: cursor.droppedGroups,
        droppedSessions: cursor.droppedSessions,
      });
    }
    return { consumers };
  },
});
