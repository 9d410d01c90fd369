// The reconstructor's RPCs, one file each.
import type { ConnectRouter } from '@connectrpc/connect';
import { TrajectoryService } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import type { ReconstructorContext } from '../context.ts';
import { ackTrajectories } from './ack-trajectories.ts';
import { deleteConsumer } from './delete-consumer.ts';
import { exportSession } from './export-session.ts';
import { getTrajectory } from './get-trajectory.ts';
import { listConsumers } from './list-consumers.ts';
import { nackTrajectories } from './nack-trajectories.ts';
import { seekConsumer } from './seek-consumer.ts';
import { streamTrajectories } from './stream-trajectories.ts';

export function routes(router: ConnectRouter, ctx: ReconstructorContext): void {
  router.service(TrajectoryService, {
    ...streamTrajectories(ctx),
    ...ackTrajectories(ctx),
    ...nackTrajectories(ctx),
    ...seekConsumer(ctx),
    ...deleteConsumer(ctx),
    ...getTrajectory(ctx),
    ...exportSession(ctx),
    ...listConsumers(ctx),
  });
}
