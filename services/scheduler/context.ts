// The scheduler's parts, wired by hand. Making a context takes over the state log: an older scheduler ends.
import type { Change } from '../../gen/ts/polar/event/v1/state_pb.js';
import { PolarError } from '../common/errors.ts';
import type { Logger } from '../common/logger.ts';
import { type BlobStore, createBlobStore } from '../common/nats/blobs.ts';
import { type Bus, openBus } from '../common/nats/bus.ts';
import { PolicyWatch } from '../common/nats/policy.ts';
import { heldMs } from '../common/policy.ts';
import { Admission } from './admission/admission.ts';
import type { SchedulerConfig } from './config.ts';
import { createDispatch, type Dispatch } from './dispatch/dispatch.ts';
import type { HeldMs } from './dispatch/dispatcher.ts';
import { isEnded } from './domain/session.ts';
import type { SessionChange } from './domain/state.ts';
import * as events from './events.ts';
import { openStateLog, type StateLog } from './journal/state-log.ts';
import { Watchers } from './watch/watchers.ts';

export interface SchedulerContext extends Dispatch, AsyncDisposable {
  readonly config: SchedulerConfig;
  readonly log: Logger;
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly stateLog: StateLog;
  readonly admission: Admission;
  readonly watchers: Watchers;
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
}

export async function createContext(
  config: SchedulerConfig,
  log: Logger,
  given: AbortSignal,
  overrides: ContextOverrides = {},
): Promise<SchedulerContext> {
  const stop = new AbortController();
  const signal = AbortSignal.any([given, stop.signal]);
  const bus = await openBus({ url: config.natsUrl, name: 'scheduler', signal });
  const blobs = createBlobStore(bus);
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  const common = { bus, blobs, log, signal };
  const watchers = new Watchers();
  try {
    const stateLog = await openStateLog({
      ...common,
      ...overrides,
      onCommitted: (change, session) => onCommitted(change, session),
      onFailed: (error) => {
        if (signal.aborted) return;
        events.fenced(log, error);
        stop.abort(error);
        failed.reject(error);
      },
    });
    const { state, journal } = stateLog;
    const policies = await PolicyWatch.open({ bus, signal });
    const held: HeldMs = (fromMs, toMs) => heldMs(policies.policy, fromMs, toMs);
    const dispatch = createDispatch({ ...common, ...overrides, state, journal, heldMs: held });
    const onCommitted = (change: Change, session: SessionChange | undefined): void =>
      committed({ ...dispatch, log, watchers }, change, session);
    return {
      ...common,
      ...dispatch,
      config,
      stateLog,
      watchers,
      admission: new Admission({ ...dispatch, bus, signal }),
      failed: failed.promise,
      stop: () => stop.abort(new PolarError('SHUTTING_DOWN', 'the scheduler is stopping')),
      [Symbol.asyncDispose]: () => bus.close(),
    };
  } catch (error) {
    await bus.close();
    throw error;
  }
}

/** A change is durable and in the state: now it may show outside. */
function committed(
  { board, outbox, announcer, watchers, log }: Dispatch & Pick<SchedulerContext, 'log' | 'watchers'>,
  { kind }: Change,
  session: SessionChange | undefined,
): void {
  if (kind.case === 'task') {
    const task = board.state.tasks.get(kind.value.taskId);
    if (task === undefined) return;
    events.taskSubmitted(log, task);
    board.place(task);
  }
  if (session === undefined) return;
  events.sessionChanged(log, session);
  outbox.committed(session);
  watchers.changed(session);
  if (isEnded(session.after)) announcer.check(session.task);
}
