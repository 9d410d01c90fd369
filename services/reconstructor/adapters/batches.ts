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
import { moveTraces, storedTrajectory, tokensOf } from '../domain/stored.ts';
import { trajectoryLost } from '../events.ts';
import type { StoredGroup } from './trajectory-log.ts';

/** A group with its trajectories, whose traces are as they are stored. */
export interface Resolved {
  readonly batchId: number;
  /** Without what depends on who gets it, and when. */
  readonly batch: TrajectoryBatch;
  readonly sizeBytes: number;
  /** Token ids in its traces. */
  readonly tokens: number;
}

/** Resolves when so many bytes of trajectories may be fetched. */
export type Room = (sizeBytes: number) => Promise<void>;

export interface Batches {
  /** A trajectory that is gone is a typed failure in the batch; only an absent NATS throws (NATS_UNAVAILABLE). */
  resolve(stored: StoredGroup, signal: AbortSignal, room?: Room): Promise<Resolved>;
  /** One session's trajectory. Throws BLOB_MISSING. */
  trajectory(group: GroupReady, result: SessionResult, signal: AbortSignal): Promise<Trajectory>;
}

export function createBatches(blobs: BlobStore, log: Logger): Batches {
  const read = async (
    { trajectory, sessionId }: SessionResult,
    decode: (bytes: Uint8Array) => Trajectory,
    signal: AbortSignal,
  ): Promise<Trajectory | undefined> => {
    const bytes = trajectory && (await blobs.get(trajectory, signal));
    try {
      return bytes && decode(bytes);
    } catch (error) {
      const message = `the trajectory of ${sessionId} cannot be read`;
      throw new PolarError('RECORDS_INVALID', message, { cause: error });
    }
  };
  const orFailure = async (group: GroupReady, result: SessionResult, signal: AbortSignal) => {
    try {
      const stored = await read(result, storedTrajectory, signal);
      const trajectory = trajectoryOf(group, result, stored);
      return stored === undefined ? trajectory : moveTraces(stored, trajectory);
    } catch (error) {
      trajectoryLost(log, result.sessionId, lost(error, signal));
      return withoutTrajectory(group, result, error);
    }
  };

  return {
    async trajectory(group, result, signal) {
      const built = await read(result, (bytes) => fromBinary(TrajectorySchema, bytes), signal);
      return trajectoryOf(group, result, built);
    },
    async resolve(stored, signal, room) {
      const { batchId, subject } = stored;
      let group: GroupReady;
      try {
        group = await stored.read(signal);
      } catch (error) {
        trajectoryLost(log, subject, lost(error, signal));
        return { batchId, batch: lostGroup(batchId, subject, error), sizeBytes: 0, tokens: 0 };
      }
      try {
        const sizeBytes = checkSize(group);
        await room?.(sizeBytes);
        const all = await Promise.all(group.sessions.map((result) => orFailure(group, result, signal)));
        const tokens = all.reduce((sum, one) => sum + tokensOf(one), 0);
        return { batchId, batch: batchOf(batchId, group, all), sizeBytes, tokens };
      } catch (error) {
        trajectoryLost(log, subject, lost(error, signal));
        const none = group.sessions.map((result) => withoutTrajectory(group, result, error));
        return { batchId, batch: batchOf(batchId, group, none), sizeBytes: 0, tokens: 0 };
      }
    },
  };
}

/** What is gone for good; anything else is thrown on, to be tried again. */
function lost(error: unknown, signal: AbortSignal): PolarError {
  signal.throwIfAborted();
  if (error instanceof PolarError && !error.retryable) return error;
  throw error;
}
