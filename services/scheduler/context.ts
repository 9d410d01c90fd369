// The parts of a scheduler that leads, wired by hand. Making a context takes over the state log: an older one is fenced.
import type { Change } from '../../gen/ts/polar/event/v1/state_pb.js';
import { PolarError } from '../common/errors.ts';
import type { Logger } from '../common/logger.ts';
import { type BlobStore, createBlobStore } from '../common/nats/blobs.ts';
import type { Bus } from '../common/nats/bus.ts';
import { PolicyWatch } from '../common/nats/policy.ts';
import { Admission } from './admission/admission.ts';
import { Room } from './admission/room.ts';
import type { SchedulerConfig } from './config.ts';
import { clock, unixMs } from './dispatch/clock.ts';
import type { HeldSince } from './dispatch/deadlines.ts';
import { createDispatch, type Dispatch } from './dispatch/dispatch.ts';
import { queueRules } from './dispatch/rules.ts';
import { carriesOver } from './domain/rounds.ts';
import { isEnded } from './domain/session.ts';
import type { SessionChange } from './domain/state.ts';
import type { Surroundings } from './domain/waiting.ts';
import * as events from './events.ts';
import { openStateLog, type StateLog } from './journal/state-log.ts';
import type { Lease } from './lease/lease.ts';
import { showBoard } from './metrics.ts';
import type { SweepTimes } from './sweep/blob-sweep.ts';
import { Watchers } from './watch/watchers.ts';

export interface SchedulerContext extends Dispatch {
  readonly config: SchedulerConfig;
  readonly log: Logger;
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly lease: Lease;
  readonly stateLog: StateLog;
  readonly room: Room;
  readonly admission: Admission;
  readonly watchers: Watchers;
  readonly sweepTimes: SweepTimes;
  /** Since when it leads, by the monotonic clock. */
  readonly sinceMs: number;
  /** What sessions wait for, at this moment. */
  readonly surroundings: () => Surroundings;
  /** Aborts when the service stops, and before anything fails because the state log is closed. */
  readonly signal: AbortSignal;
  /** Rejects when the state log is closed to this scheduler. */
  readonly failed: Promise<never>;
  /** Ends everything that waits for the signal. */
  stop(): void;
}

export interface ContextOverrides {
  /** Commits between two snapshots. */
  readonly commitsPerSnapshot?: number;
  /** What a stage may take beyond its budget. */
  readonly stageGraceMs?: number;
  /** Pause after the first failed try of a callback. */
  readonly callbackPauseMs?: number;
  /** Of the sweep of blobs. */
  readonly sweepTimes?: SweepTimes;
  /** Specs of tasks in memory. */
  readonly liveSpecsBytesMax?: number;
}

export interface ContextOptions {
  readonly config: SchedulerConfig;
  readonly bus: Bus;
  readonly lease: Lease;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** To be made when the lease is held. */
export async function createContext(
  { config, bus, lease, log, signal: given }: ContextOptions,
  overrides: ContextOverrides = {},
): Promise<SchedulerContext> {
  const stop = new AbortController();
  const signal = AbortSignal.any([given, stop.signal]);
  const blobs = createBlobStore(bus);
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  const common = { bus, blobs, log, signal };
  const watchers = new Watchers();
  const stateLog = await openStateLog({
    ...common,
    ...overrides,
    holder: lease.holder,
    onCommitted: (change, session) => onCommitted(change, session),
    onFailed: (error) => {
      if (signal.aborted) return;
      events.fenced(log, error);
      stop.abort(error);
      failed.reject(error);
    },
  });
  const { state, journal } = stateLog;
  clock.notBefore(state.activityMs);
  state.usage.keep(queueRules(config.topology).map(({ name }) => name));
  const { held } = await PolicyWatch.open({ bus, signal });
  const heldSince: HeldSince = (fromMs) => held.inLast(clock.passedMs(fromMs, unixMs()));
  const isHeard = (): boolean => lease.held;
  const dispatch = createDispatch({ ...common, ...overrides, config, state, journal, heldSince, isHeard });
  const onCommitted = (change: Change, session: SessionChange | undefined): void =>
    committed({ ...dispatch, log, watchers }, change, session);
  const shown = showBoard(dispatch.board);
  signal.addEventListener('abort', () => shown[Symbol.dispose](), { once: true });
  const room = new Room(state, overrides.liveSpecsBytesMax);
  return {
    ...common,
    ...dispatch,
    config,
    lease,
    stateLog,
    watchers,
    sweepTimes: overrides.sweepTimes ?? {},
    sinceMs: performance.now(),
    surroundings: () => surroundingsOf(dispatch, held.isHeld),
    room,
    admission: new Admission({ ...dispatch, bus, room, signal }),
    failed: failed.promise,
    stop: () => stop.abort(new PolarError('SHUTTING_DOWN', 'the scheduler is stopping')),
  };
}

function surroundingsOf({ board, engines }: Dispatch, paused: boolean): Surroundings {
  const { nodes, queue, state, journal } = board;
  return {
    ...{ nodes, queue, engines, paused },
    isDraining: (nodeId) => state.isDraining(nodeId),
    logFull: journal.full,
    nowMs: unixMs(),
  };
}

/** A change is durable and in the state: now it may show outside. */
function committed(
  parts: Dispatch & Pick<SchedulerContext, 'log' | 'watchers'>,
  { kind }: Change,
  session: SessionChange | undefined,
): void {
  const { board, outbox, announcer, archiver, callbacks, deadlines, watchers, log } = parts;
  if (kind.case === 'task') {
    const task = board.state.tasks.get(kind.value.taskId);
    if (task === undefined) return;
    events.taskSubmitted(log, task);
    board.place(task);
    deadlines.watch(task);
  }
  if (kind.case === 'groupAnnounced' || kind.case === 'callbackDone') {
    const task = board.state.tasks.get(kind.value.taskId);
    if (task === undefined) return;
    announcer.check(task);
    callbacks.check(task);
    archiver.check(task);
  }
  if (session === undefined) return;
  events.sessionChanged(log, session);
  outbox.committed(session);
  watchers.changed(session);
  if (isEnded(session.after) || isEnded(session.before)) deadlines.watch(session.task);
  if (isEnded(session.after) || carriesOver(session.task)) announcer.check(session.task);
  if (!isEnded(session.after)) return;
  // One that came back from the archive is whole with its last session.
  archiver.check(session.task);
}
