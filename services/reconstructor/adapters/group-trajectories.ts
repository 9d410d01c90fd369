// The trajectories of a group, fetched from the blob store, as many bytes of them as fit into a batch.
import { fromBinary } from '@bufbuild/protobuf';
import type { GroupReady, SessionResult } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { type Trajectory, TrajectorySchema } from '../../../gen/ts/polar/reconstructor/v1/trajectory_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { Logger } from '../../common/logger.ts';
import { giveBack } from '../../common/memory.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import { batchTooLarge, storedBytes, trajectoryOf, withoutTrajectory } from '../domain/batch.ts';
import { moveTraces, storedTrajectory } from '../domain/stored.ts';
import { rewardTraces } from '../domain/trace-rewards.ts';
import { countDropped, Fitting } from '../domain/without-experts.ts';
import { trajectoryLost } from '../events.ts';

/** Those of a group, with traces as they are stored. */
export interface Fetched {
  readonly trajectories: Trajectory[];
  readonly sizeBytes: number;
  /** What holds their traces. */
  readonly memory: readonly Uint8Array[];
}

/** What is left out of a group, and the memory of what is not. */
interface Fetching {
  readonly fitting: Fitting;
  readonly memory: Uint8Array[];
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
    const built = await this.#read(result, (bytes) => fromBinary(TrajectorySchema, bytes), signal);
    return rewardTraces(trajectoryOf(group, result, built), result.traceRewards);
  }

  /**
   * All of them; one that is gone is a typed failure. Where routed experts have to be left out, they come one after
   * another: so it is always the same ones, and not all of it is in memory. Throws BATCH_TOO_LARGE.
   */
  async all(group: GroupReady, signal: AbortSignal): Promise<Fetched> {
    const sizeBytes = storedBytes(group);
    const memory: Uint8Array[] = [];
    const into = { fitting: new Fitting(sizeBytes, this.#bytesMax), memory };
    const stored = (result: SessionResult): Promise<Trajectory> => this.#stored(group, result, into, signal);
    if (sizeBytes <= this.#bytesMax) {
      return { trajectories: await Promise.all(group.sessions.map(stored)), sizeBytes, memory };
    }
    const trajectories: Trajectory[] = [];
    for (const result of group.sessions) trajectories.push(await stored(result));
    const keptBytes = memory.reduce((sum, bytes) => sum + bytes.byteLength, 0);
    if (keptBytes <= this.#bytesMax) return { trajectories, sizeBytes: keptBytes, memory };
    giveBack(memory);
    throw batchTooLarge(group, keptBytes);
  }

  async #stored(
    group: GroupReady,
    result: SessionResult,
    { fitting, memory }: Fetching,
    signal: AbortSignal,
  ): Promise<Trajectory> {
    try {
      let dropped = 0;
      const decode = (bytes: Uint8Array): Trajectory => {
        const kept = fitting.keep(bytes);
        if (kept.bytes !== bytes) giveBack([bytes]);
        memory.push(kept.bytes);
        dropped = kept.calls;
        return storedTrajectory(kept.bytes);
      };
      const stored = await this.#read(result, decode, signal);
      const trajectory = trajectoryOf(group, result, stored);
      if (stored !== undefined) moveTraces(stored, trajectory);
      countDropped(trajectory, dropped);
      return rewardTraces(trajectory, result.traceRewards);
    } catch (error) {
      trajectoryLost(this.#log, result.sessionId, lost(error, signal));
      return withoutTrajectory(group, result, error);
    }
  }

  async #read(
    { trajectory, sessionId }: SessionResult,
    decode: (bytes: Uint8Array) => Trajectory,
    signal: AbortSignal,
  ): Promise<Trajectory | undefined> {
    const bytes = trajectory && (await this.#blobs.get(trajectory, signal));
    try {
      return bytes && decode(bytes);
    } catch (error) {
      const message = `the trajectory of ${sessionId} cannot be read`;
      throw new PolarError('RECORDS_INVALID', message, { cause: error });
    }
  }
}

/** What is gone for good; anything else is thrown on, to be tried again. */
export function lost(error: unknown, signal: AbortSignal): PolarError {
  signal.throwIfAborted();
  if (error instanceof PolarError && !error.retryable) return error;
  throw error;
}
