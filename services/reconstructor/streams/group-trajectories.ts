// The trajectories of a group, fetched from the blob store, as many bytes of them as fit into a batch.
import type { GroupReady, SessionResult } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { type Trajectory, TrajectorySchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { Logger } from '../../common/logger.ts';
import { giveBack } from '../../common/memory.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import { fromStored } from '../../common/stored.ts';
import { batchTooLarge, storedBytes, trajectoryOf, withoutTrajectory } from '../domain/batch.ts';
import { moveTraces, storedTrajectory } from '../domain/stored.ts';
import { rewardTraces } from '../domain/trace-rewards.ts';
import { countDropped, Fitting, type Kept } from '../domain/without-experts.ts';
import { trajectoryLost } from '../events.ts';

/** Those of a group, with traces as they are stored. */
export interface Fetched {
  readonly trajectories: Trajectory[];
  readonly sizeBytes: number;
  /** What holds their traces. */
  readonly memory: readonly Uint8Array[];
  /** None of them is gone, and nothing of them was left out. */
  readonly isWhole: boolean;
}

export class GroupTrajectories {
  readonly #blobs: BlobStore;
  readonly #log: Logger;
  readonly #bytesMax: number;

  constructor(blobs: BlobStore, log: Logger, bytesMax: number) {
    this.#blobs = blobs;
    this.#log = log;
    this.#bytesMax = bytesMax;
  }

  /** What is fetched of it at once, at most. */
  roomFor(group: GroupReady): number {
    return Math.min(storedBytes(group), this.#bytesMax);
  }

  /** One that can be read. Throws BLOB_MISSING or RECORDS_INVALID. */
  async one(group: GroupReady, result: SessionResult, signal: AbortSignal): Promise<Trajectory> {
    const bytes = await this.#bytes(result, signal);
    const built = bytes && readable(result, () => fromStored(TrajectorySchema, bytes));
    return rewardTraces(trajectoryOf(group, result, built), result.traceRewards);
  }

  /** All of them; one that is gone is a typed failure. Throws BATCH_TOO_LARGE. */
  async all(group: GroupReady, signal: AbortSignal): Promise<Fetched> {
    const sizeBytes = storedBytes(group);
    if (sizeBytes > this.#bytesMax) return await this.#fitted(group, sizeBytes, signal);
    const refs = group.sessions.flatMap(({ trajectory }) => trajectory ?? []);
    const { blobs, memory } = await this.#blobs.getAll(refs, signal);
    const left = blobs.values();
    let isWhole = true;
    const trajectories = group.sessions.map((result) => {
      const bytes = result.trajectory && left.next().value;
      return this.#typed(
        group,
        result,
        signal,
        () => {
          if (bytes instanceof PolarError) throw bytes;
          return stored(group, result, bytes);
        },
        () => {
          isWhole = false;
        },
      );
    });
    return { trajectories, sizeBytes, memory: [memory], isWhole };
  }

  /** One after another, without routed experts until the rest fits: so it is always the same ones, and no more of it is in
   * memory than may be sent. */
  async #fitted(group: GroupReady, sizeBytes: number, signal: AbortSignal): Promise<Fetched> {
    const fitting = new Fitting(sizeBytes, this.#bytesMax);
    const memory: Uint8Array[] = [];
    const trajectories: Trajectory[] = [];
    let keptBytes = 0;
    for (const result of group.sessions) {
      const bytes = await this.#bytes(result, signal).catch((error: unknown) => lost(error, signal));
      const trajectory = this.#typed(group, result, signal, () => {
        if (bytes instanceof PolarError) throw bytes;
        const kept = bytes && readable(result, () => keptOf(fitting, bytes));
        if (kept !== undefined) memory.push(kept.bytes);
        keptBytes += kept?.bytes.byteLength ?? 0;
        return countDropped(stored(group, result, kept?.bytes), kept?.calls ?? 0);
      });
      trajectories.push(trajectory);
      if (keptBytes <= this.#bytesMax) continue;
      giveBack(memory);
      throw batchTooLarge(group, sizeBytes);
    }
    return { trajectories, sizeBytes: keptBytes, memory, isWhole: false };
  }

  /** What is gone, or cannot be read, in its typed form. */
  #typed(
    group: GroupReady,
    result: SessionResult,
    signal: AbortSignal,
    made: () => Trajectory,
    onLost?: () => void,
  ): Trajectory {
    try {
      return made();
    } catch (error) {
      onLost?.();
      trajectoryLost(this.#log, result.sessionId, lost(error, signal));
      return withoutTrajectory(group, result, error);
    }
  }

  async #bytes({ trajectory }: SessionResult, signal: AbortSignal): Promise<Uint8Array | undefined> {
    return trajectory && (await this.#blobs.get(trajectory, signal));
  }
}

/** Its traces as they are stored. Throws RECORDS_INVALID. */
function stored(group: GroupReady, result: SessionResult, bytes: Uint8Array | undefined): Trajectory {
  const built = bytes && readable(result, () => storedTrajectory(bytes));
  const trajectory = trajectoryOf(group, result, built);
  if (built !== undefined) moveTraces(built, trajectory);
  return rewardTraces(trajectory, result.traceRewards);
}

function keptOf(fitting: Fitting, bytes: Uint8Array): Kept {
  const kept = fitting.keep(bytes);
  if (kept.bytes !== bytes) giveBack([bytes]);
  return kept;
}

/** Throws RECORDS_INVALID where the bytes are no trajectory. */
function readable<T>({ sessionId }: SessionResult, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new PolarError('RECORDS_INVALID', `the trajectory of ${sessionId} cannot be read`, {
      cause: error,
    });
  }
}

/** What is gone for good; anything else is thrown on, to be tried again. */
export function lost(error: unknown, signal: AbortSignal): PolarError {
  signal.throwIfAborted();
  if (error instanceof PolarError && !error.retryable) return error;
  throw error;
}
