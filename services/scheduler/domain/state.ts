// The scheduler's state: what the commits of the log say, in memory. It changes only by `apply`, in the log's order, so
// that every scheduler that reads the log comes to the same state.
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import {
  type Change,
  ChangeSchema,
  type SessionRecord,
  type TaskRecord,
} from '../../../gen/ts/polar/event/v1/state_pb.js';
import { ENDED_SESSIONS_KEPT_MAX, ENDED_SPECS_BYTES_MAX } from '../../common/limits.ts';
import { GROUP_ID, isEnded, type Outcome, queuedSession, SessionState, sessionOf } from './session.ts';
import { outlineOfRecord, recordBytes } from './task.ts';

/** A task with its sessions. For others to read; only `State` changes it. */
export interface TaskState {
  readonly record: TaskRecord;
  /** Without file contents. */
  readonly spec: TaskSpec;
  /** Grows from task to task. */
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
  /** Its group is in the trajectory stream. */
  announced: boolean;
}

export interface SessionChange {
  readonly task: TaskState;
  readonly before: SessionRecord;
  readonly after: SessionRecord;
}

export interface StateLimits {
  readonly endedSessions: number;
  readonly endedSpecsBytes: number;
}

const LIMITS: StateLimits = {
  endedSessions: ENDED_SESSIONS_KEPT_MAX,
  endedSpecsBytes: ENDED_SPECS_BYTES_MAX,
};

export class State {
  readonly tasks = new Map<string, TaskState>();
  readonly #byPrefix = new Map<string, TaskState>();
  readonly #byRequest = new Map<string, TaskState>();
  /** Announced tasks, the one that was announced first in front. */
  readonly #done = new Set<TaskState>();
  readonly #limits: StateLimits;
  #order = 0;
  #liveSessions = 0;
  #liveSpecsBytes = 0;
  #endedSessions = 0;
  #endedSpecsBytes = 0;
  #activityMs = 0;

  constructor(limits: StateLimits = LIMITS) {
    this.#limits = limits;
  }

  /** Sessions that have not ended. */
  get liveSessions(): number {
    return this.#liveSessions;
  }

  /** Specs of the tasks that are not announced. */
  get liveSpecsBytes(): number {
    return this.#liveSpecsBytes;
  }

  /** Unix time in milliseconds of the last change of a task or session. */
  get activityMs(): number {
    return this.#activityMs;
  }

  byRequest(requestId: string): TaskState | undefined {
    return this.#byRequest.get(requestId);
  }

  /** The task of a session and the session's sample index. */
  find(sessionId: string): { readonly task: TaskState; readonly sampleIndex: number } | undefined {
    const dash = sessionId.lastIndexOf('-');
    const task = this.#byPrefix.get(sessionId.slice(0, dash));
    const digits = sessionId.slice(dash + 1);
    if (task === undefined || !/^(0|[1-9]\d{0,5})$/.test(digits)) return undefined;
    const sampleIndex = Number(digits);
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
        this.#setAnnounced(kind.value.taskId);
        return undefined;
      default:
        return undefined;
    }
  }

  /** The state as changes that lead to it, to the order in which tasks will be forgotten too. */
  *changes(): Iterable<Change> {
    for (const task of this.tasks.values()) {
      yield create(ChangeSchema, { kind: { case: 'task', value: task.record } });
      for (const record of task.sessions) {
        if (record !== undefined) yield create(ChangeSchema, { kind: { case: 'session', value: record } });
      }
    }
    for (const task of this.#done) yield announcedChange(task.record.taskId);
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
      announced: false,
    };
    this.tasks.set(record.taskId, task);
    this.#byPrefix.set(record.sessionPrefix, task);
    this.#byRequest.set(record.requestId, task);
    this.#liveSessions += record.numSamples;
    this.#liveSpecsBytes += task.sizeBytes;
    this.#activityMs = Math.max(this.#activityMs, Number(record.createMs));
  }

  #setSession(after: SessionRecord): SessionChange | undefined {
    const { taskId, sampleIndex, state, outcome, reward, endTime } = sessionOf(after);
    const task = this.tasks.get(taskId);
    if (task === undefined || sampleIndex >= task.record.numSamples) return undefined;
    const before = this.session(task, sampleIndex);
    task.sessions[sampleIndex] = after;
    add(task.byState, sessionOf(before).state, -1);
    add(task.byState, state, 1);
    if (isEnded(after) && !isEnded(before)) {
      add(task.byOutcome, outcome, 1);
      this.#liveSessions--;
      task.endMs = Math.max(task.endMs, endTime === undefined ? 0 : timestampMs(endTime));
      if (reward !== undefined) {
        task.rewardSum += reward;
        task.rewards++;
      }
    }
    this.#activityMs = Math.max(this.#activityMs, Number(after.stateMs));
    return { task, before, after };
  }

  #setAnnounced(taskId: string): void {
    const task = this.tasks.get(taskId);
    if (task === undefined || task.announced) return;
    task.announced = true;
    // What only the announcement needed is in it.
    for (const [i, record] of task.sessions.entries()) {
      if (record === undefined) continue;
      const { ran: _, built: __, evaluated: ___, ...kept } = record;
      task.sessions[i] = kept;
    }
    this.#liveSpecsBytes -= task.sizeBytes;
    this.#endedSessions += task.record.numSamples;
    this.#endedSpecsBytes += task.sizeBytes;
    this.#done.add(task);
    this.#forgetOldest();
  }

  #forgetOldest(): void {
    for (const task of this.#done) {
      const fits =
        this.#endedSessions <= this.#limits.endedSessions &&
        this.#endedSpecsBytes <= this.#limits.endedSpecsBytes;
      if (fits) return;
      this.#done.delete(task);
      this.#endedSessions -= task.record.numSamples;
      this.#endedSpecsBytes -= task.sizeBytes;
      this.tasks.delete(task.record.taskId);
      this.#byPrefix.delete(task.record.sessionPrefix);
      this.#byRequest.delete(task.record.requestId);
    }
  }
}

/** Whether no session of the task can change any more. */
export const allEnded = (task: TaskState): boolean =>
  (task.byState.get(SessionState.ENDED) ?? 0) === task.record.numSamples;

export const announcedChange = (taskId: string): Change =>
  create(ChangeSchema, { kind: { case: 'groupAnnounced', value: { taskId, groupId: GROUP_ID } } });

function add<K>(counts: Map<K, number>, key: K, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
