// The scheduler's state: what the commits of the log say, in memory. It changes only by `apply`, in the log's order, so
// that every scheduler that reads the log comes to the same state.
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import {
  type CallbackDone,
  type CallbackOwed,
  type Change,
  ChangeSchema,
  type SessionRecord,
  type TaskRecord,
} from '../../../gen/ts/polar/event/v1/state_pb.js';
import { TOMBSTONES_MAX } from '../../common/limits.ts';
import { callbackBody } from './callback.ts';
import { queueOf } from './queue.ts';
import { ranMs } from './ran.ts';
import { announcedBefore, inLater, isAnnounced } from './rounds.ts';
import {
  changeMs,
  groupIdOf,
  isEnded,
  type Outcome,
  partsOfSessionId,
  queuedSession,
  roundOf,
  SessionState,
  sessionOf,
} from './session.ts';
import { outlineOfRecord, recordBytes } from './task.ts';
import { Usage } from './usage.ts';

/** A task with its sessions. For others to read; only `State` changes it. */
export interface TaskState {
  readonly record: TaskRecord;
  /** Without file contents. */
  readonly spec: TaskSpec;
  /** Grows from task to task; the same for every scheduler that reads the log. */
  readonly order: number;
  readonly sizeBytes: number;
  /** By sample index; undefined while the session is as the task implies it. */
  readonly sessions: (SessionRecord | undefined)[];
  readonly byState: Map<SessionState, number>;
  readonly byOutcome: Map<Outcome, number>;
  rewardSum: number;
  rewards: number;
  /** Unix time in milliseconds at which the last session ended. */
  endMs: number;
  /** Of its present group, see `groupIdOf`: grows when sessions of an announced group go again, or are carried over. */
  round: number;
  /** Of the groups up to the present one, how many are in the trajectory stream: the first ones. */
  announcedRounds: number;
  /** Of the present group; undefined while it is to come. */
  callback: 'delivered' | 'given-up' | undefined;
  /** What its callback has to tell of announced groups, by group: sessions may go again before it is told. */
  readonly owed: Map<string, string>;
}

export interface SessionChange {
  readonly task: TaskState;
  readonly before: SessionRecord;
  readonly after: SessionRecord;
}

export class State {
  readonly tasks = new Map<string, TaskState>();
  readonly usage = new Usage();
  readonly #byPrefix = new Map<string, TaskState>();
  readonly #byRequest = new Map<string, TaskState>();
  #order = 0;
  #liveSessions = 0;
  #sessions = 0;
  #specsBytes = 0;
  #activityMs = 0;
  #revision = 0n;
  readonly #draining = new Set<string>();
  /** Tasks that were cancelled ahead, and until when that holds. */
  readonly #tombstones = new Map<string, number>();

  /** Of the task that comes next, be it new or from the archive. */
  get order(): number {
    return this.#order;
  }

  /** Sessions that have not ended. */
  get liveSessions(): number {
    return this.#liveSessions;
  }

  /** Sessions of all tasks that are not in the archive yet. */
  get sessions(): number {
    return this.#sessions;
  }

  /** Specs of these tasks. */
  get specsBytes(): number {
    return this.#specsBytes;
  }

  /** Unix time in milliseconds of the last change of a task or session. */
  get activityMs(): number {
    return this.#activityMs;
  }

  /** Of the session that changed last. */
  get revision(): bigint {
    return this.#revision;
  }

  isDraining(nodeId: string): boolean {
    return this.#draining.has(nodeId);
  }

  isCancelledAhead(taskId: string, nowMs: number): boolean {
    return (this.#tombstones.get(taskId) ?? 0) > nowMs;
  }

  byRequest(requestId: string): TaskState | undefined {
    return this.#byRequest.get(requestId);
  }

  /** The task of a session and the session's sample index. */
  find(sessionId: string): { readonly task: TaskState; readonly sampleIndex: number } | undefined {
    const parts = partsOfSessionId(sessionId);
    const task = parts && this.#byPrefix.get(parts.prefix);
    if (task === undefined || parts === undefined) return undefined;
    const { sampleIndex } = parts;
    return sampleIndex < task.record.numSamples ? { task, sampleIndex } : undefined;
  }

  session(task: TaskState, sampleIndex: number): SessionRecord {
    return task.sessions[sampleIndex] ?? queuedSession(task.record, task.spec, sampleIndex);
  }

  /** Applies a committed change; returns what changed of a session. */
  apply({ kind }: Change): SessionChange | undefined {
    switch (kind.case) {
      case 'task':
        this.#addTask(kind.value);
        return undefined;
      case 'session':
        return this.#setSession(kind.value);
      case 'groupAnnounced':
        this.#setAnnounced(kind.value.taskId, kind.value.groupId);
        return undefined;
      case 'taskArchived':
        this.#dropTask(kind.value.taskId, kind.value.groupId);
        return undefined;
      case 'revisionReached':
        this.#reach(kind.value.revision);
        return undefined;
      case 'orderReached':
        this.#order = Number(kind.value.order);
        return undefined;
      case 'nodeDrained':
        if (kind.value.draining) this.#draining.add(kind.value.nodeId);
        else this.#draining.delete(kind.value.nodeId);
        return undefined;
      case 'taskTombstone':
        this.#setTombstone(kind.value.taskId, Number(kind.value.expireMs));
        return undefined;
      case 'callbackOwed':
        this.#setOwed(kind.value);
        return undefined;
      case 'callbackDone':
        this.#setCallback(kind.value);
        return undefined;
      case 'queueUsed':
        this.usage.set(kind.value.queue, {
          runMs: Number(kind.value.runMs),
          runs: Number(kind.value.runs),
        });
        return undefined;
      default:
        return undefined;
    }
  }

  /** The state as changes that lead to it. */
  *changes(): Iterable<Change> {
    yield create(ChangeSchema, { kind: { case: 'revisionReached', value: { revision: this.#revision } } });
    for (const [queue, { runMs, runs }] of this.usage.all) {
      const value = { queue, runMs: BigInt(runMs), runs: BigInt(runs) };
      yield create(ChangeSchema, { kind: { case: 'queueUsed', value } });
    }
    let order = 0;
    for (const task of this.tasks.values()) {
      if (task.order !== order) yield orderReached(task.order);
      order = task.order + 1;
      yield taskChange(task.record);
      for (const record of task.sessions) {
        if (record !== undefined) yield sessionChange(record);
      }
      for (const [groupId, body] of task.owed) yield owedChange(task, groupId, body);
      yield* announcements(task);
    }
    if (this.#order !== order) yield orderReached(this.#order);
    for (const nodeId of this.#draining) yield drainChange(nodeId, true);
    for (const [taskId, expireMs] of this.#tombstones) yield tombstoneChange(taskId, expireMs);
  }

  #addTask(record: TaskRecord): void {
    if (this.tasks.has(record.taskId)) return;
    const task: TaskState = {
      record,
      spec: outlineOfRecord(record),
      order: this.#order++,
      sizeBytes: recordBytes(record),
      sessions: Array.from({ length: record.numSamples }, () => undefined),
      byState: new Map([[SessionState.QUEUED, record.numSamples]]),
      byOutcome: new Map(),
      rewardSum: 0,
      rewards: 0,
      endMs: 0,
      round: 0,
      announcedRounds: 0,
      callback: undefined,
      owed: new Map(),
    };
    this.tasks.set(record.taskId, task);
    this.#byPrefix.set(record.sessionPrefix, task);
    this.#byRequest.set(record.requestId, task);
    this.#liveSessions += record.numSamples;
    this.#sessions += record.numSamples;
    this.#specsBytes += task.sizeBytes;
    this.#activityMs = Math.max(this.#activityMs, Number(record.createMs));
  }

  #setSession(after: SessionRecord): SessionChange | undefined {
    const { taskId, groupId, sampleIndex, state, outcome, reward, endTime } = sessionOf(after);
    const task = this.tasks.get(taskId);
    if (task === undefined || sampleIndex >= task.record.numSamples) return undefined;
    const before = this.session(task, sampleIndex);
    task.sessions[sampleIndex] = after;
    add(task.byState, sessionOf(before).state, -1);
    add(task.byState, state, 1);
    if (isEnded(before) && !isEnded(after)) this.#goAgain(task, before);
    const runMs = ranMs(before, after, task.spec);
    if (runMs !== undefined) this.usage.ran(queueOf(task.spec), runMs);
    task.round = Math.max(task.round, roundOf(groupId));
    task.announcedRounds = Math.max(task.announcedRounds, announcedBefore(task, task.round));
    this.#reach(after.revision);
    if (isEnded(after) && !isEnded(before)) {
      add(task.byOutcome, outcome, 1);
      this.#liveSessions--;
      task.endMs = Math.max(task.endMs, endTime === undefined ? 0 : timestampMs(endTime));
      if (reward !== undefined) {
        task.rewardSum += reward;
        task.rewards++;
      }
    }
    this.#activityMs = Math.max(this.#activityMs, changeMs(after));
    return { task, before, after };
  }

  /** A session that had ended is under way again. */
  #goAgain(task: TaskState, before: SessionRecord): void {
    const { outcome, reward } = sessionOf(before);
    add(task.byOutcome, outcome, -1);
    this.#liveSessions++;
    if (reward !== undefined) {
      task.rewardSum -= reward;
      task.rewards--;
    }
    task.callback = undefined;
  }

  #reach(revision: bigint): void {
    if (revision > this.#revision) this.#revision = revision;
  }

  #setTombstone(taskId: string, expireMs: number): void {
    // The one that ends first is in front: all live equally long.
    this.#tombstones.delete(taskId);
    this.#tombstones.set(taskId, expireMs);
    for (const [oldest] of this.#tombstones) {
      if (this.#tombstones.size <= TOMBSTONES_MAX) return;
      this.#tombstones.delete(oldest);
    }
  }

  #setOwed({ taskId, groupId, body }: CallbackOwed): void {
    this.tasks.get(taskId)?.owed.set(groupId, body);
  }

  #setCallback({ taskId, groupId, delivered }: CallbackDone): void {
    this.tasks.get(taskId)?.owed.delete(groupId);
    const task = this.#withGroup(taskId, groupId);
    if (task === undefined) return;
    task.callback = delivered ? 'delivered' : 'given-up';
  }

  /** The task, if that is its present group. One that comes from the archive is told its group before its sessions. */
  #withGroup(taskId: string, groupId: string): TaskState | undefined {
    const task = this.tasks.get(taskId);
    const round = roundOf(groupId);
    if (task === undefined || round < task.round || (round > task.round && isAnnounced(task)))
      return undefined;
    task.round = round;
    return task;
  }

  #setAnnounced(taskId: string, groupId: string): void {
    const round = roundOf(groupId);
    const task = this.#withGroup(taskId, groupId) ?? this.tasks.get(taskId);
    if (task === undefined || round > task.round || round < task.announcedRounds) return;
    task.announcedRounds = round + 1;
    if (task.spec.callbackUrl !== '' && task.callback === undefined && !task.owed.has(groupId))
      task.owed.set(groupId, callbackBody(task, round));
    // What only the announcement needed is in it.
    for (const [i, record] of task.sessions.entries()) {
      if (record === undefined || inLater(record, round)) continue;
      const { ran: _, built: __, evaluated: ___, graded: ____, ...kept } = record;
      task.sessions[i] = kept;
    }
  }

  /** An ended task is in the archive. */
  #dropTask(taskId: string, groupId: string): void {
    const task = this.tasks.get(taskId);
    if (task === undefined || !isSettled(task) || groupId !== groupIdOf(task.round)) return;
    this.#sessions -= task.record.numSamples;
    // One that is torn has sessions that have not ended here.
    this.#liveSessions -= task.record.numSamples - endedOf(task);
    this.#specsBytes -= task.sizeBytes;
    this.tasks.delete(taskId);
    this.#byPrefix.delete(task.record.sessionPrefix);
    this.#byRequest.delete(task.record.requestId);
  }
}

/** Whether no session of the task can change any more. */
export const allEnded = (task: TaskState): boolean => endedOf(task) === task.record.numSamples;

const endedOf = ({ byState }: TaskState): number => byState.get(SessionState.ENDED) ?? 0;

/** Whether a task that was announced lacks sessions: it is coming back from the archive. */
export const isTorn = (task: TaskState): boolean => isAnnounced(task) && !allEnded(task);

/** Whether nothing is left to do for a task: it goes to the archive. */
export const isSettled = (task: TaskState): boolean => isAnnounced(task) && task.owed.size === 0;

export const taskChange = (record: TaskRecord): Change =>
  create(ChangeSchema, { kind: { case: 'task', value: record } });

export const sessionChange = (record: SessionRecord): Change =>
  create(ChangeSchema, { kind: { case: 'session', value: record } });

const orderReached = (order: number): Change =>
  create(ChangeSchema, { kind: { case: 'orderReached', value: { order: BigInt(order) } } });

/** What was announced, and which callbacks of it are done: those that are owed are told before. */
function* announcements(task: TaskState): Iterable<Change> {
  const { record, announcedRounds, callback, owed } = task;
  if (announcedRounds === 0) return;
  const groupId = groupIdOf(announcedRounds - 1);
  yield announcedGroup(record.taskId, groupId);
  if (isAnnounced(task)) {
    if (callback !== undefined) yield callbackChange(task, callback === 'delivered');
  } else if (!owed.has(groupId)) yield callbackOfGroup(record.taskId, groupId, true);
}

export const announcedChange = ({ record: { taskId }, round }: TaskState): Change =>
  announcedGroup(taskId, groupIdOf(round));

export const announcedGroup = (taskId: string, groupId: string): Change =>
  create(ChangeSchema, { kind: { case: 'groupAnnounced', value: { taskId, groupId } } });

export const archivedChange = ({ record: { taskId }, round }: TaskState): Change =>
  create(ChangeSchema, { kind: { case: 'taskArchived', value: { taskId, groupId: groupIdOf(round) } } });

const owedChange = ({ record: { taskId } }: TaskState, groupId: string, body: string): Change =>
  create(ChangeSchema, { kind: { case: 'callbackOwed', value: { taskId, groupId, body } } });

export const callbackChange = ({ record: { taskId }, round }: TaskState, delivered: boolean): Change =>
  callbackOfGroup(taskId, groupIdOf(round), delivered);

export const callbackOfGroup = (taskId: string, groupId: string, delivered: boolean): Change =>
  create(ChangeSchema, { kind: { case: 'callbackDone', value: { taskId, groupId, delivered } } });

export const drainChange = (nodeId: string, draining: boolean): Change =>
  create(ChangeSchema, { kind: { case: 'nodeDrained', value: { nodeId, draining } } });

export const tombstoneChange = (taskId: string, expireMs: number): Change =>
  create(ChangeSchema, {
    kind: { case: 'taskTombstone', value: { taskId, expireMs: BigInt(expireMs) } },
  });

function add<K>(counts: Map<K, number>, key: K, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
