// Groups to batches: fetches the trajectories that a group names.
import { create } from '@bufbuild/protobuf';
import {
  type GroupReady,
  type SessionResult,
  SessionResultSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { Layout } from '../../../gen/ts/polar/reconstructor/v1/reconstructor_service_pb.js';
import {
  type Trajectory,
  type TrajectoryBatch,
  TrajectoryBatchSchema,
} from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { PolarError } from '../../common/errors.ts';
import { BATCH_BYTES_MAX } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import { batchOf, lostGroup, withoutTrajectory } from '../domain/batch.ts';
import { checkColumns } from '../domain/columns.ts';
import { packableBytes } from '../domain/packable.ts';
import { type Packed, packedOf } from '../domain/packed.ts';
import { tokensOf } from '../domain/stored.ts';
import { trajectoryLost } from '../events.ts';
import { type Fetched, GroupTrajectories, lost } from './group-trajectories.ts';
import type { Packs } from './packs.ts';
import type { Place, StoredGroup } from './trajectory-log.ts';

/** A group with its trajectories, whose traces are as they are stored. */
export interface Resolved extends Place {
  /** Without what depends on who gets it, and when; of one that is packed its id alone. */
  readonly batch: TrajectoryBatch;
  /** All else of it, as it is stored for LAYOUT_COLUMNS. */
  readonly packed?: Packed;
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

export interface Unpacked extends Resolved {
  /** No trajectory is lost, and nothing was left out. */
  readonly isWhole: boolean;
}

export interface Batches {
  /** A trajectory that is gone is a typed failure in the batch; only an absent NATS throws (NATS_UNAVAILABLE). */
  resolve(stored: StoredGroup, layout: Layout, signal: AbortSignal, room?: Room): Promise<Resolved>;
  /** The same in LAYOUT_COLUMNS and without a look for a pack. */
  unpacked(stored: StoredGroup, signal: AbortSignal): Promise<Unpacked>;
  /** One session's trajectory. Throws BLOB_MISSING. */
  trajectory(group: GroupReady, result: SessionResult, signal: AbortSignal): Promise<Trajectory>;
}

/** `bytesMax` is what a batch may have. */
export function createBatches(
  blobs: BlobStore,
  packs: Pick<Packs, 'find'>,
  log: Logger,
  bytesMax = BATCH_BYTES_MAX,
): Batches {
  const of = new GroupTrajectories(blobs, log, bytesMax);
  const unpacked = async (
    stored: StoredGroup,
    layout: Layout,
    signal: AbortSignal,
    room?: Room,
  ): Promise<Unpacked> => {
    const { batchId, storedMs, subject } = stored;
    const place = { batchId, storedMs };
    const nothing = { sizeBytes: 0, tokens: 0, memory: [], isWhole: false };
    let group: GroupReady;
    try {
      group = await stored.read(signal);
    } catch (error) {
      trajectoryLost(log, subject, lost(error, signal));
      return { ...place, ...nothing, batch: lostGroup(batchId, subject, error) };
    }
    try {
      await room?.(of.roomFor(group));
      const fetched = await of.all(group, signal);
      const { trajectories, sizeBytes, memory, isWhole } =
        layout === Layout.COLUMNS ? checked(log, group, fetched, signal) : fetched;
      const tokens = trajectories.reduce((sum, one) => sum + tokensOf(one), 0);
      return { ...place, batch: batchOf(batchId, group, trajectories), sizeBytes, tokens, memory, isWhole };
    } catch (error) {
      trajectoryLost(log, subject, lost(error, signal));
      const none = group.sessions.map((result) => withoutTrajectory(group, result, error));
      return { ...place, ...nothing, batch: batchOf(batchId, group, none) };
    }
  };
  return {
    trajectory: (group, result, signal) => of.one(group, result, signal),
    unpacked: (stored, signal) => unpacked(stored, Layout.COLUMNS, signal),
    async resolve(stored, layout, signal, room) {
      const packed = layout === Layout.COLUMNS && (await fromPack(packs, stored, signal, room));
      return packed || (await unpacked(stored, layout, signal, room));
    },
  };
}

/** Undefined where it has no pack, or none that can be used; only an absent NATS throws. */
async function fromPack(
  packs: Pick<Packs, 'find'>,
  { batchId, storedMs, subject, bytes }: StoredGroup,
  signal: AbortSignal,
  room: Room | undefined,
): Promise<Resolved | undefined> {
  const group = await bytes(signal).catch((error: unknown) => lost(error, signal));
  if (group instanceof PolarError) return undefined;
  const sizeBytes = packableBytes(group);
  if (sizeBytes === undefined) return undefined;
  await room?.(sizeBytes);
  const pack = await packs.find({ subject, group });
  if (pack === undefined) return undefined;
  const packed = viewOf(pack.body);
  if (packed === undefined) return undefined;
  const batch = create(TrajectoryBatchSchema, { batchId: BigInt(batchId) });
  return { batchId, storedMs, batch, packed, sizeBytes, tokens: packed.tokens, memory: [pack.memory] };
}

/** Undefined where another version has written it. */
function viewOf(body: Uint8Array): Packed | undefined {
  try {
    return packedOf(body);
  } catch {
    return undefined;
  }
}

/** Those whose columns do not fit together cannot stand among others. */
function checked(log: Logger, group: GroupReady, fetched: Fetched, signal: AbortSignal): Fetched {
  let { isWhole } = fetched;
  const trajectories = fetched.trajectories.map((trajectory, i) => {
    try {
      checkColumns(trajectory);
      return trajectory;
    } catch (cause) {
      const { sessionId } = trajectory;
      const error = new PolarError('RECORDS_INVALID', `the trajectory of ${sessionId} cannot be read`, {
        cause,
      });
      trajectoryLost(log, sessionId, lost(error, signal));
      isWhole = false;
      return withoutTrajectory(group, group.sessions[i] ?? create(SessionResultSchema), error);
    }
  });
  return { ...fetched, trajectories, isWhole };
}
