// The parts that decide and the parts that carry out, wired together.
import { STAGE_GRACE_MS } from '../../common/limits.ts';
import type { Logger } from '../../common/logger.ts';
import type { BlobStore } from '../../common/nats/blobs.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { Nodes } from '../domain/nodes.ts';
import { DispatchQueue } from '../domain/queue.ts';
import type { State } from '../domain/state.ts';
import type { Journal } from '../journal/journal.ts';
import { Announcer } from './announcer.ts';
import { Board } from './board.ts';
import { Dispatcher, type HeldMs } from './dispatcher.ts';
import { Effects } from './effects.ts';
import { Outbox } from './outbox.ts';
import { Specs } from './specs.ts';

export interface Dispatch {
  readonly board: Board;
  readonly dispatcher: Dispatcher;
  readonly effects: Effects;
  readonly outbox: Outbox;
  readonly announcer: Announcer;
  readonly specs: Specs;
}

export interface DispatchOptions {
  readonly bus: Bus;
  readonly blobs: BlobStore;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly state: State;
  readonly journal: Journal;
  /** What a stage may take beyond its budget; default STAGE_GRACE_MS. */
  readonly stageGraceMs?: number;
  readonly heldMs: HeldMs;
}

export function createDispatch({
  state,
  journal,
  stageGraceMs,
  heldMs,
  ...common
}: DispatchOptions): Dispatch {
  const { blobs, log, signal } = common;
  const board = new Board(state, journal, new Nodes(), new DispatchQueue());
  const effects = new Effects(log, signal);
  const specs = new Specs(blobs);
  return {
    board,
    effects,
    specs,
    dispatcher: new Dispatcher(board, log, stageGraceMs ?? STAGE_GRACE_MS, heldMs),
    outbox: new Outbox({ ...common, board, effects, specs }),
    announcer: new Announcer({ ...common, journal, effects }),
  };
}
