// Groups to batches: fetches the trajectories that a group names.
import { fromBinary } from '@bufbuild/protobuf';
import type { GroupReady, SessionResult } from '../../../gen/ts/polar/event/v1/work_pb.js';
import {
  type Trajectory,
  type TrajectoryBatch,
  TrajectorySchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { Logger } from '../../common/logger.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import { batchOf, checkSize, lostGroup, trajectoryOf, withoutTrajectory } from '../domain/batch.ts';
import { trajectoryLost } from '../events.ts';
import type { StoredGroup } from './trajectory-log.ts';

export interface Batches {
  /** A trajectory that is gone is a typed failure in the batch; only an absent NATS throws (NATS_UNAVAILABLE). */
  resolve(
    stored: StoredGroup,
    redelivered: boolean,
    signal: AbortSignal,
  ): Promise<{ readonly batch: TrajectoryBatch; readonly sizeBytes: number }>;
  /** One session's trajectory. Throws BLOB_MISSING. */
  trajectory(group: GroupReady, result: SessionResult, signal: AbortSignal): Promise<Trajectory>;
}

export function createBatches(blobs: BlobStore, log: Logger): Batches {
  const trajectory: Batches['trajectory'] = async (group, result, signal) => {
    if (result.trajectory === undefined) return trajectoryOf(group, result);
    return trajectoryOf(group, result, decode(await blobs.get(result.trajectory, signal), result));
  };
  const orFailure = async (group: GroupReady, result: SessionResult, signal: AbortSignal) => {
    try {
      return await trajectory(group, result, signal);
    } catch (error) {
      trajectoryLost(log, result.sessionId, lost(error, signal));
      return withoutTrajectory(group, result, error);
    }
  };

  return {
    trajectory,
    async resolve(stored, redelivered, signal) {
      let group: GroupReady;
      try {
        group = await stored.read(signal);
      } catch (error) {
        trajectoryLost(log, stored.subject, lost(error, signal));
        return { batch: lostGroup(stored.batchId, stored.subject, error, redelivered), sizeBytes: 0 };
      }
      try {
        const sizeBytes = checkSize(group);
        const all = await Promise.all(group.sessions.map((result) => orFailure(group, result, signal)));
        return { batch: batchOf(stored.batchId, group, all, redelivered), sizeBytes };
      } catch (error) {
        trajectoryLost(log, stored.subject, lost(error, signal));
        const none = group.sessions.map((result) => withoutTrajectory(group, result, error));
        return { batch: batchOf(stored.batchId, group, none, redelivered), sizeBytes: 0 };
      }
    },
  };
}

function decode(bytes: Uint8Array, result: SessionResult): Trajectory {
  try {
    return fromBinary(TrajectorySchema, bytes);
  } catch (error) {
    throw new PolarError('RECORDS_INVALID', `the trajectory of ${result.sessionId} cannot be read`, {
      cause: error,
    });
  }
}

/** What is gone for good; anything else is thrown on, to be tried again. */
function lost(error: unknown, signal: AbortSignal): PolarError {
  signal.throwIfAborted();
  if (error instanceof PolarError && !error.retryable) return error;
  throw error;
}
