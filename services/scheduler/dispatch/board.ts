// Where every session stands by what is proposed: the queue, and the slots taken on each node. Decisions are made here, so
// that no slot and no session is given twice; what a decision causes waits for its commit, see outbox.ts.
import { create } from '@bufbuild/protobuf';
import type { Failure } from '../../../gen/ts/polar/common/v1/failure_pb.js';
import { ChangeSchema, type SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { isExternal } from '../../common/specs/external.ts';
import type { Nodes } from '../domain/nodes.ts';
import { lostOn } from '../domain/placement.ts';
import { type DispatchQueue, type QueueItem, queueOf, rankOf } from '../domain/queue.ts';
import { ranMs } from '../domain/ran.ts';
import { attemptLost, isEnded, needsSandbox, SessionState, sessionOf } from '../domain/session.ts';
import type { State, TaskState } from '../domain/state.ts';
import { needOf, partsOfNeed } from '../domain/task.ts';
import type { Journal } from '../journal/journal.ts';
import { unixMs } from './clock.ts';

/** A session and its record by what is proposed. */
export interface Found {
  readonly task: TaskState;
  readonly record: SessionRecord;
}

export class Board {
  readonly state: State;
  readonly journal: Journal;
  readonly nodes: Nodes;
  readonly queue: DispatchQueue;
  /** Called when a slot may have become free or a session may have come to wait for one. */
  onMoved: () => void = () => {};
  #revision: bigint;

  constructor(state: State, journal: Journal, nodes: Nodes, queue: DispatchQueue) {
    this.state = state;
    this.journal = journal;
    this.nodes = nodes;
    this.queue = queue;
    this.#revision = state.revision;
  }

  find(sessionId: string): Found | undefined {
    const found = this.state.find(sessionId);
    if (found === undefined) return undefined;
    const { task, sampleIndex } = found;
    return { task, record: this.journal.latest(task, sampleIndex) };
  }

  /** Puts a task's waiting sessions in the queue and what holds a slot on its node. */
  place(task: TaskState): void {
    for (let i = 0; i < task.record.numSamples; i++) {
      const record = this.journal.latest(task, i);
      if (!isEnded(record)) this.#move(task, record, record);
    }
    this.onMoved();
  }

  /** Resolves when the next record of a session is committed. */
  async change({ task, record }: Found, changed: SessionRecord): Promise<void> {
    const next = { ...changed, revision: ++this.#revision };
    const committed = this.journal.propose(create(ChangeSchema, { kind: { case: 'session', value: next } }));
    this.#move(task, record, next);
    this.onMoved();
    await committed;
  }

  /** Gives the present attempt of a session up for an infrastructure reason. Its commit is not waited for. */
  lose(found: Found, why: Failure): void {
    const next = attemptLost(found.record, why, found.task.spec.maxAttempts, unixMs());
    this.decide(found, next);
  }

  /** Changes a session without waiting for the commit: when the log is closed, the whole process ends. */
  decide(found: Found, next: SessionRecord): void {
    this.change(found, next).catch(() => {});
  }

  #move(task: TaskState, before: SessionRecord, after: SessionRecord): void {
    const need = needOf(task.spec);
    const hasGpus = partsOfNeed(need).gpus > 0 && needsSandbox(after, task.spec);
    this.nodes.move(before, after, performance.now(), hasGpus ? need : undefined);
    // Who opens one says when it begins: it stands in no queue.
    if (isExternal(task.spec)) return;
    const { sessionId, state } = sessionOf(after);
    const item = itemOf(task, after);
    if (isUnderWay(after)) this.queue.started(sessionId, item);
    else if (isUnderWay(before)) this.queue.ended(sessionId, secondsOf(ranMs(before, after, task.spec)));
    if (state === SessionState.QUEUED) this.queue.push(item);
    else this.queue.drop(sessionId);
  }
}

/** What a session is in the queue. */
export function itemOf({ record, spec, order }: TaskState, session: SessionRecord): QueueItem {
  const { sessionId, sampleIndex } = sessionOf(session);
  return {
    sessionId,
    taskId: record.taskId,
    sampleIndex,
    queue: queueOf(spec),
    rank: rankOf(Number(record.createMs), spec.dispatchPriority),
    order,
    taskCap: spec.maxRunningSessions,
    need: needOf(spec),
    lostOn: lostOn(session),
    notBeforeMs: Number(session.notBeforeMs),
  };
}

/** From dispatch to the end of the run: what caps count. */
function isUnderWay(record: SessionRecord): boolean {
  const { state } = sessionOf(record);
  return state === SessionState.PREPARING || state === SessionState.READY || state === SessionState.RUNNING;
}

const secondsOf = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1000);
