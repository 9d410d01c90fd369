import type { ServiceImpl } from '@connectrpc/connect';
import type { TrajectoryService } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { ReconstructorContext } from '../context.ts';
import { trajectoryOf } from '../domain/batch.ts';

export const getTrajectory = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'getTrajectory'> => ({
  async getTrajectory({ sessionId, summary }, { signal }) {
    const session = await ctx.sessions.get(sessionId, signal);
    const { group, result } = await ctx.sessions.ended(session, signal);
    if (summary) return { trajectory: trajectoryOf(group, result) };
    return { trajectory: await ctx.batches.trajectory(group, result, signal) };
  },
});
