// The clocks of sessions: stages that take too long, waiting beyond its budget, groups that have enough.
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { failure } from '../../common/errors.ts';
import { BUILDS_AT_ONCE_MAX, QUEUE_CHECK_MS } from '../../common/limits.ts';
import { isExternal } from '../../common/specs/external.ts';
import { budgetMs, type Clock, clocksOf, sinceMs } from '../domain/budgets.ts';
import { stopAtMs, usableOf } from '../domain/early-stop.ts';
import { outOfTime } from '../domain/external-end.ts';
import { sessionsOn } from '../domain/nodes.ts';
import type { OpenLeases } from '../domain/open-leases.ts';
import { carriesOver, inLater } from '../domain/rounds.ts';
import {
  carriedOver,
  ended,
  groupIdOf,
  isEnded,
  isOpen,
  needsEvaluation,
  Outcome,
  SessionState,
  sessionOf,
  stoppedEarly,
} from '../domain/session.ts';
import { allEnded, type TaskState } from '../domain/state.ts';
import type { Board, Found } from './board.ts';
import { clock as time, unixMs } from './clock.ts';

/** Milliseconds since then in which model calls were held, and the clocks of runs stood still. */
export type HeldSince = (unixMs: number) => number;

export class Deadlines {
  readonly #board: Board;
  readonly #graceMs: number;
  readonly #heldSince: HeldSince;
  readonly #leases: OpenLeases;
  readonly #startMs = unixMs();
  /** Tasks whose sessions may wait for so long only. */
  readonly #limited = new Set<TaskState>();
  /** Tasks that have enough usable sessions: what the others had left, and when. */
  readonly #stops = new Map<TaskState, { readonly leftMs: number; readonly sinceMs: number }>();
  /** Sessions that the evaluators of their node can be grading, and since when. Others wait, and that costs no budget. */
  #grading: ReadonlyMap<string, number> = new Map();
  /** The same of those that a reconstructor can be building. */
  #building: ReadonlyMap<string, number> = new Map();
  #queueCheckMs = 0;

  /** `graceMs`: what a stage may take beyond its budget before its silence counts. */
  constructor(board: Board, graceMs: number, heldSince: HeldSince, leases: OpenLeases) {
    this.#board = board;
    this.#graceMs = graceMs;
    this.#heldSince = heldSince;
    this.#leases = leases;
  }

  /** A task is there, or one of its sessions has changed: its clocks may have begun. */
  watch(task: TaskState): void {
    if (allEnded(task)) {
      this.#limited.delete(task);
      this.#stops.delete(task);
      return;
    }
    if (task.spec.budgets?.queue !== undefined) this.#limited.add(task);
    // Once there are enough, later ends do not change when there were.
    if (this.#stops.has(task)) return;
    const sinceMs = unixMs();
    const stopMs = stopAtMs(task);
    if (stopMs !== undefined) this.#stops.set(task, { leftMs: stopMs - sinceMs, sinceMs });
  }

  /** To be called at every tick. */
  check(nowMs: number): void {
    this.#leases.look(nowMs);
    for (const [task, { leftMs, sinceMs }] of this.#stops) {
      if (time.passedMs(sinceMs, nowMs) >= leftMs) this.#stopEarly(task, nowMs);
    }
    if (time.passedMs(this.#queueCheckMs, nowMs) >= QUEUE_CHECK_MS) {
      this.#queueCheckMs = nowMs;
      for (const task of this.#limited) this.#checkQueued(task, nowMs);
    }
    // Facts of the time before the start may still come.
    if (time.passedMs(this.#startMs, nowMs) < this.#graceMs) return;
    this.#grading = this.#gradingNow(nowMs);
    this.#building = this.#buildingNow(nowMs);
    for (const node of this.#board.nodes.all) {
      for (const id of sessionsOn(node)) this.#checkAttempt(this.#board.find(id), nowMs);
    }
  }

  #checkAttempt(found: Found | undefined, nowMs: number): void {
    if (found === undefined) return;
    const { record, task } = found;
    if (this.#leases.hasLapsed(record, nowMs)) {
      const ms = record.opened?.leaseMs;
      this.#board.lose(found, failure('CALLER_LOST', `who has it open said nothing for ${ms} ms`));
      return;
    }
    const late = clocksOf(record, task.spec).find((clock) => {
      const spentMs = time.passedMs(this.#begunMs(record, clock), nowMs) - this.#heldIn(record, clock);
      return spentMs > budgetMs(task.spec, clock) + this.#allowedMs(record, clock);
    });
    if (late === undefined) return;
    // What runs elsewhere is timed here: it is ended as any other run whose time is over.
    if (late === 'run' && isOpen(record)) this.#board.decide(found, outOfTime(record, nowMs));
    else this.#lose(found, late);
  }

  #lose(found: Found, late: Clock): void {
    const ms = budgetMs(found.task.spec, late) + this.#allowedMs(found.record, late);
    const what =
      late === 'ready' ? `no run slot within ${ms} ms` : `no word of the ${late} stage within ${ms} ms`;
    this.#board.lose(found, failure('STAGE_TIMEOUT', what));
  }

  /** Stages are timed where they run; waiting is timed here alone, and what runs elsewhere. */
  #allowedMs(record: SessionRecord, clock: Clock): number {
    return clock === 'ready' || (clock === 'run' && isOpen(record)) ? 0 : this.#graceMs;
  }

  #heldIn(record: SessionRecord, clock: Clock): number {
    return clock === 'run' || clock === 'ready' ? this.#heldSince(sinceMs(record, clock)) : 0;
  }

  /** Infinite where it has not begun: its session waits for a place. */
  #begunMs(record: SessionRecord, clock: Clock): number {
    if (clock !== 'evaluate' && clock !== 'build') return sinceMs(record, clock);
    const atWork = clock === 'evaluate' ? this.#grading : this.#building;
    return atWork.get(sessionOf(record).sessionId) ?? Number.POSITIVE_INFINITY;
  }

  /** Evaluators take sessions in the order in which these have run. */
  #gradingNow(nowMs: number): Map<string, number> {
    const grading = new Map<string, number>();
    for (const { finishing, heartbeat } of this.#board.nodes.all) {
      let slots = Math.max(1, heartbeat?.evaluateSlots ?? 1);
      for (const id of finishing) {
        if (slots === 0) break;
        const found = this.#board.find(id);
        if (found === undefined || !needsEvaluation(found.record, found.task.spec)) continue;
        grading.set(id, this.#grading.get(id) ?? nowMs);
        slots--;
      }
    }
    return grading;
  }

  /** Reconstructors take sessions in the order in which these have run. How many there are is not known: one at least. */
  #buildingNow(nowMs: number): Map<string, number> {
    const unbuilt = [...this.#board.nodes.all]
      .flatMap(({ finishing }) => [...finishing])
      .map((id) => this.#board.find(id)?.record)
      .filter((record) => record !== undefined)
      .filter(({ built }) => built === undefined);
    unbuilt.sort((a, b) => Number(a.stateMs - b.stateMs));
    const first = unbuilt.slice(0, BUILDS_AT_ONCE_MAX).map((record) => sessionOf(record).sessionId);
    return new Map(first.map((id) => [id, this.#building.get(id) ?? nowMs]));
  }

  #checkQueued(task: TaskState, nowMs: number): void {
    // None has waited for longer than the task is there: of most, no session is looked at.
    const budget = budgetMs(task.spec, 'queue');
    if (time.passedMs(Number(task.record.createMs), nowMs) <= budget) return;
    for (const found of this.#sessionsOf(task)) {
      const { record } = found;
      if (sessionOf(record).state !== SessionState.QUEUED) continue;
      if (time.passedMs(Number(record.stateMs), nowMs) <= budget) continue;
      const nobody = isExternal(task.spec) ? 'nobody opened it' : 'no node took it';
      const why = failure('QUEUE_TIMEOUT', `${nobody} within ${budget} ms`);
      this.#board.decide(found, ended(record, Outcome.INFRASTRUCTURE_ERROR, nowMs, why));
    }
  }

  #stopEarly(task: TaskState, nowMs: number): void {
    this.#stops.delete(task);
    // A session that went again meanwhile has been asked for.
    if (stopAtMs(task) === undefined) return;
    const usable = usableOf(task);
    for (const found of this.#sessionsOf(task)) {
      const { record } = found;
      if (isEnded(record)) continue;
      if (!carriesOver(task)) this.#board.decide(found, stoppedEarly(record, usable, nowMs));
      else if (!inLater(record, 0)) this.#board.decide(found, carriedOver(record, groupIdOf(1)));
    }
  }

  #sessionsOf(task: TaskState): Found[] {
    return task.sessions.map((_, i) => ({ task, record: this.#board.journal.latest(task, i) }));
  }
}
