// Composition root: what routes and consumers get.
import { createScheduler } from '../common/ask-scheduler.ts';
import type { Topology } from '../common/config/topology.ts';
import type { Logger } from '../common/logger.ts';
import { type BlobStore, createBlobStore } from '../common/nats/blobs.ts';
import { type Bus, openBus } from '../common/nats/bus.ts';
import { createRecords, type Records } from '../common/nats/records.ts';
import type { ReconstructorConfig } from './config.ts';
import { Cursors } from './cursors/cursors.ts';
import { showStreams } from './metrics.ts';
import { createStore, type Store } from './retention/store.ts';
import { Exports } from './sessions/exports.ts';
import { createSessions, type Sessions } from './sessions/sessions.ts';
import { type Batches, createBatches } from './streams/batches.ts';
import { createPacks, type Packs } from './streams/packs.ts';
import { openPolicyVersion, type PolicyVersion } from './streams/policy-version.ts';
import { Streams } from './streams/streams.ts';
import { openTrajectoryLog, type TrajectoryLog } from './streams/trajectory-log.ts';

/** Of what all consumers have acknowledged. */
export interface Retention {
  readonly store: Store;
  /** After its group was complete; undefined: for ever. */
  readonly keepMs: number | undefined;
}

export interface ReconstructorContext extends AsyncDisposable {
  readonly config: ReconstructorConfig;
  readonly log: Logger;
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly records: Records;
  readonly trajectories: TrajectoryLog;
  readonly batches: Batches;
  readonly packs: Packs;
  readonly cursors: Cursors;
  readonly policy: PolicyVersion;
  readonly streams: Streams;
  readonly sessions: Sessions;
  readonly exports: Exports;
  readonly retention: Retention;
}

export async function createContext(
  config: ReconstructorConfig,
  log: Logger,
  signal: AbortSignal,
): Promise<ReconstructorContext> {
  await using opened = new AsyncDisposableStack();
  const bus = await openBus({ ...config.nats, name: 'reconstructor', signal, log });
  opened.defer(() => bus.close());
  const blobs = createBlobStore(bus);
  const cursors = opened.use(await Cursors.open(bus));
  const trajectories = opened.use(openTrajectoryLog(bus, blobs));
  const packs = createPacks(bus);
  const batches = createBatches(blobs, packs, log);
  const policy = await openPolicyVersion(bus, signal);
  const credentials = { token: config.token, tls: config.tls };
  const scheduler = createScheduler(bus, config.topology.rollout.public_url, credentials);
  const streams = new Streams({ cursors, trajectories, batches, policy, log });
  opened.use(showStreams(() => streams.count));
  const all = opened.move();
  return {
    config,
    log,
    bus,
    blobs,
    records: createRecords(bus, blobs),
    trajectories,
    batches,
    packs,
    cursors,
    policy,
    streams,
    sessions: createSessions(scheduler, trajectories),
    exports: new Exports(),
    retention: { store: createStore(bus), keepMs: keepMsOf(config.topology) },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const DAY_MS = 24 * 3_600_000;

function keepMsOf({ retention }: Topology): number | undefined {
  return retention.acked_days === null ? undefined : retention.acked_days * DAY_MS;
}
