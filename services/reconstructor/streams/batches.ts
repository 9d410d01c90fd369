// Groups to batches: fetches the trajectories that a group names.
import type { GroupReady, SessionResult } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { Trajectory, TrajectoryBatch } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { BATCH_BYTES_MAX } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import { batchOf, lostGroup, withoutTrajectory } from '../domain/batch.ts';
import { tokensOf } from '../domain/stored.ts';
import { trajectoryLost } from '../events.ts';
import { GroupTrajectories, lost } from './group-trajectories.ts';
import type { Place, StoredGroup } from './trajectory-log.ts';

/** A group with its trajectories, whose traces are as they are stored. */
export interface Resolved extends Place {
  /** Without what depends on who gets it, and when. */
  readonly batch: TrajectoryBatch;
  readonly sizeBytes: number;
  /** Token ids in its traces. */
  readonly tokens: number;
  /** What was read for it, and holds its traces: it ends with the batch. */
  readonly memory: readonly Uint8Array[];
  /** A stream sends it, and its memory with it: no other may, also where the batch may be sent again meanwhile. */
  isTaken?: true;
}

/** Resolves when so many bytes of trajectories may be fetched. */
export type Room = (sizeBytes: number) => Promise<void>;

export interface Batches {
  /** A trajectory that is gone is a typed failure in the batch; only an absent NATS throws (NATS_UNAVAILABLE). */
  resolve(stored: StoredGroup, signal: AbortSignal, room?: Room): Promise<Resolved>;
  /** One session's trajectory. Throws BLOB_MISSING. */
  trajectory(group: GroupReady, result: SessionResult, signal: AbortSignal): Promise<Trajectory>;
}

/** `bytesMax` is what a batch may have. */
export function createBatches(blobs: BlobStore, log: Logger, bytesMax = BATCH_BYTES_MAX): Batches {
  const of = new GroupTrajectories(blobs, log, bytesMax);
  return {
    trajectory: (group, result, signal) => of.one(group, result, signal),
    async resolve(stored, signal, room) {
      const { batchId, storedMs, subject } = stored;
      const place = { batchId, storedMs };
      let group: GroupReady;
      try {
        group = await stored.read(signal);
      } catch (error) {
        trajectoryLost(log, subject, lost(error, signal));
        return { ...place, batch: lostGroup(batchId, subject, error), sizeBytes: 0, tokens: 0, memory: [] };
      }
      try {
        await room?.(of.roomFor(group));
        const { trajectories, sizeBytes, memory } = await of.all(group, signal);
        const tokens = trajectories.reduce((sum, one) => sum + tokensOf(one), 0);
        return { ...place, batch: batchOf(batchId, group, trajectories), sizeBytes, tokens, memory };
      } catch (error) {
        trajectoryLost(log, subject, lost(error, signal));
        const none = group.sessions.map((result) => withoutTrajectory(group, result, error));
        return { ...place, batch: batchOf(batchId, group, none), sizeBytes: 0, tokens: 0, memory: [] };
      }
    },
  };
}
