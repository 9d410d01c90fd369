import type { ServiceImpl } from '@connectrpc/connect';
import type { TrajectoryService } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { ReconstructorContext } from '../context.ts';

export const getTrajectory = (
  ctx: ReconstructorContext,
): Pick<ServiceImpl<typeof TrajectoryService>, 'getTrajectory'> => ({
  async getTrajectory({ sessionId }, { signal }) {
    const session = await ctx.sessions.get(sessionId, signal);
    const { group, result } = await ctx.sessions.ended(session, signal);
    return { trajectory: await ctx.batches.trajectory(group, result, signal) };
  },
});
