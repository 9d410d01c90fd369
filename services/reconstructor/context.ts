// Composition root: what routes and consumers get.
import type { Logger } from '../common/logger.ts';
import { type BlobStore, createBlobStore } from '../common/nats/blobs.ts';
import { type Bus, openBus } from '../common/nats/bus.ts';
import { type Batches, createBatches } from './adapters/batches.ts';
import { Cursors } from './adapters/cursors.ts';
import { createRecords, type Records } from './adapters/records.ts';
import { createScheduler } from './adapters/scheduler.ts';
import { createSessions, type Sessions } from './adapters/sessions.ts';
import { Streams } from './adapters/streams.ts';
import { openTrajectoryLog, type TrajectoryLog } from './adapters/trajectory-log.ts';
import type { ReconstructorConfig } from './config.ts';

export interface ReconstructorContext extends AsyncDisposable {
  readonly config: ReconstructorConfig;
  readonly log: Logger;
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly records: Records;
  readonly trajectories: TrajectoryLog;
  readonly batches: Batches;
  readonly cursors: Cursors;
  readonly streams: Streams;
  readonly sessions: Sessions;
}

export async function createContext(
  config: ReconstructorConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<ReconstructorContext> {
  const bus = await openBus({ url: config.natsUrl, name: 'reconstructor', signal });
  try {
    const blobs = createBlobStore(bus);
    const cursors = await Cursors.open(bus);
    const trajectories = openTrajectoryLog(bus, blobs);
    const batches = createBatches(blobs, log);
    const scheduler = createScheduler(bus, config.topology.rollout.public_url);
    return {
      config,
      log,
      bus,
      blobs,
      records: createRecords(bus, blobs),
      trajectories,
      batches,
      cursors,
      streams: new Streams({ cursors, trajectories, batches, log }),
      sessions: createSessions(scheduler, trajectories),
      async [Symbol.asyncDispose]() {
        trajectories[Symbol.dispose]();
        await bus.close();
      },
    };
  } catch (error) {
    await bus.close();
    throw error;
  }
}
