// The parts that decide and the parts that carry out, wired together.
import { STAGE_GRACE_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { CallbackHosts } from '../admission/callback-hosts.ts';
import { Archive } from '../archive/archive.ts';
import { Archiver } from '../archive/archiver.ts';
import type { SchedulerConfig } from '../config.ts';
import { Engines } from '../domain/engines.ts';
import { Nodes } from '../domain/nodes.ts';
import { OpenLeases } from '../domain/open-leases.ts';
import { DispatchQueue } from '../domain/queue.ts';
import { Shares } from '../domain/shares.ts';
import type { State } from '../domain/state.ts';
import type { Journal } from '../journal/journal.ts';
import { Announcer } from './announcer.ts';
import { Board } from './board.ts';
import { Callbacks } from './callbacks.ts';
import { unixMs } from './clock.ts';
import { Deadlines, type HeldSince } from './deadlines.ts';
import { Dispatcher } from './dispatcher.ts';
import { Effects } from './effects.ts';
import { Outbox } from './outbox.ts';
import { engineRules, queueRules } from './rules.ts';
import { Specs } from './specs.ts';

export interface Dispatch {
  readonly board: Board;
  readonly engines: Engines;
  readonly deadlines: Deadlines;
  readonly leases: OpenLeases;
  readonly dispatcher: Dispatcher;
  readonly effects: Effects;
  readonly outbox: Outbox;
  readonly announcer: Announcer;
  readonly callbacks: Callbacks;
  readonly callbackHosts: CallbackHosts;
  readonly archive: Archive;
  readonly archiver: Archiver;
  readonly specs: Specs;
}

export interface DispatchOptions {
  readonly config: SchedulerConfig;
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly state: State;
  readonly journal: Journal;
  /** What a stage may take beyond its budget; default STAGE_GRACE_MS. */
  readonly stageGraceMs?: number;
  /** Pause after the first failed try of a callback; default CALLBACK_PAUSE_MS. */
  readonly callbackPauseMs?: number;
  readonly heldSince: HeldSince;
  /** Whether calls are answered now. */
  readonly isHeard: () => boolean;
}

export function createDispatch({
  config: { topology, callbackSecret },
  state,
  journal,
  stageGraceMs,
  callbackPauseMs,
  heldSince,
  isHeard,
  ...common
}: DispatchOptions): Dispatch {
  const { blobs, log, signal } = common;
  const shares = new Shares(queueRules(topology), (queue) => state.usage.of(queue));
  const board = new Board(state, journal, new Nodes(), new DispatchQueue(shares));
  const engines = new Engines(engineRules(topology));
  const leases = new OpenLeases(unixMs(), isHeard);
  const deadlines = new Deadlines(board, stageGraceMs ?? STAGE_GRACE_MS, heldSince, leases);
  const effects = new Effects(log, signal);
  const specs = new Specs(blobs);
  const callbackHosts = new CallbackHosts(topology.rollout.callback_hosts);
  const archive = new Archive(common.bus, blobs, signal);
  return {
    board,
    engines,
    deadlines,
    leases,
    effects,
    specs,
    archive,
    archiver: new Archiver({ archive, state, journal, effects: new Effects(log, signal) }),
    dispatcher: new Dispatcher(board, log, deadlines, engines),
    outbox: new Outbox({ ...common, board, effects, specs }),
    announcer: new Announcer({ ...common, journal, effects }),
    callbackHosts,
    callbacks: new Callbacks({
      ...{ log, signal, journal, hosts: callbackHosts },
      ...{ secret: callbackSecret, pauseMs: callbackPauseMs },
    }),
  };
}
