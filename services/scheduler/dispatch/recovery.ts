// After a take-over: every session back in its place, and what was committed and perhaps not sent, sent again.
import { sleep } from '../../common/clock.ts';
import { FACTS_BACKLOG_MS, WORK_RESEND_MS } from '../../common/limits.ts';
import type { Bus } from '../../common/nats/bus.ts';
import { CONSUMERS, STREAMS } from '../../common/nats/streams.ts';
import type { Archiver } from '../archive/archiver.ts';
import { isAnnounced } from '../domain/rounds.ts';
import { changeMs, isEnded } from '../domain/session.ts';
import { allEnded, isTorn } from '../domain/state.ts';
import type { Announcer } from './announcer.ts';
import type { Board, Found } from './board.ts';
import type { Callbacks } from './callbacks.ts';
import { unixMs } from './clock.ts';
import type { Deadlines } from './deadlines.ts';
import type { Outbox } from './outbox.ts';

const POLL_MS = 100;

export interface RecoveryOptions {
  readonly bus: Bus;
  readonly board: Board;
  readonly outbox: Outbox;
  readonly announcer: Announcer;
  readonly archiver: Archiver;
  readonly callbacks: Callbacks;
  readonly deadlines: Deadlines;
  readonly signal: AbortSignal;
}

/** Sessions that wait into the queue, those on nodes into their slots; finished groups announced, callbacks told, the rest archived. */
export function restore({ board, announcer, archiver, callbacks, deadlines }: RecoveryOptions): void {
  for (const task of board.state.tasks.values()) {
    callbacks.check(task);
    if (isTorn(task)) archiver.complete(task);
    else if (isAnnounced(task)) archiver.check(task);
    else {
      announcer.check(task);
      if (allEnded(task)) continue;
      board.place(task);
      deadlines.watch(task);
    }
  }
}

/**
 * Work that may not have been sent: that of sessions which changed shortly before the log's last commit. NATS stores a
 * repeated message once for two minutes; what is older is sent only after the facts of the time before were handled, since
 * it may have been done long ago. What is lost in spite of this ends with its stage's deadline.
 */
export async function resendWork(options: RecoveryOptions): Promise<void> {
  const { board, outbox, signal } = options;
  const unsure = unsureOf(board);
  const older: Found[] = [];
  for (const found of unsure) {
    if (unixMs() - changeMs(found.record) > WORK_RESEND_MS) older.push(found);
    else outbox.resend(found.task, found.record);
  }
  if (older.length === 0) return;
  await factsHandled(options);
  if (signal.aborted) return;
  for (const { task, record } of older) {
    const present = board.state.session(task, record.session?.sampleIndex ?? 0);
    if (present === record) outbox.resend(task, record);
  }
}

function unsureOf({ state }: Board): Found[] {
  const sinceMs = state.activityMs - WORK_RESEND_MS;
  return [...state.tasks.values()]
    .filter((task) => !isAnnounced(task))
    .flatMap((task) =>
      task.sessions
        .filter((record) => record !== undefined)
        .filter((record) => !isEnded(record) && changeMs(record) >= sinceMs)
        .map((record) => ({ task, record })),
    );
}

async function factsHandled({ bus, signal }: RecoveryOptions): Promise<void> {
  const until = performance.now() + FACTS_BACKLOG_MS;
  const durable = CONSUMERS.schedulerFacts.durable_name ?? '';
  while (!signal.aborted && performance.now() < until) {
    await sleep(POLL_MS, signal);
    const info = await bus.jsm.consumers.info(STREAMS.facts.name, durable).catch(() => undefined);
    if (info !== undefined && info.num_pending + info.num_ack_pending === 0) return;
  }
}
