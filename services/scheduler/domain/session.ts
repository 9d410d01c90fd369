// The life of one session as pure transitions: each takes the present record and returns the next one, or undefined where
// it does not apply. Records are never changed in place: a commit that is on its way holds on to them.
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Failure } from '../../../gen/ts/polar/common/v1/failure_pb.js';
import type { DeniedConnections } from '../../../gen/ts/polar/common/v1/network_pb.js';
import {
  type Attempt,
  AttemptSchema,
  Outcome,
  type Session,
  SessionSchema,
  SessionState,
  type StageTimes,
  StageTimesSchema,
} from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { TaskSpec } from '../../../gen/ts/polar/common/v1/task_pb.js';
import {
  type SessionRecord,
  SessionRecordSchema,
  type TaskRecord,
} from '../../../gen/ts/polar/event/v1/state_pb.js';
import { type AttemptRef, AttemptRefSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failure } from '../../common/errors.ts';
import { ID_PATTERN } from '../../common/ids.ts';
import { ATTEMPT_BACKOFF_MS, DENIED_TARGETS_MAX, FAILURE_MESSAGE_CHARS_MAX } from '../../common/limits.ts';
import { ATTEMPTS_PER_SESSION_MAX, isCounted, remembered } from './attempts.ts';

export { Outcome, SessionState };

/** The group that the sessions of a task are in at first: all of them. */
export const GROUP_ID = 'g0';

/** Sessions that go again after their group was announced are a group of their own: one for each round of retries. */
export const groupIdOf = (round: number): string => `g${round}`;

export const roundOf = (groupId: string): number => Number(/^g(\d+)$/.exec(groupId)?.[1] ?? 0);

export const sessionIdOf = (prefix: string, sampleIndex: number): string => `${prefix}-${sampleIndex}`;

/** The parts of a session's id; undefined where it is none. */
export function partsOfSessionId(
  id: string,
): { readonly prefix: string; readonly sampleIndex: number } | undefined {
  const dash = id.lastIndexOf('-');
  const digits = id.slice(dash + 1);
  const prefix = id.slice(0, dash);
  // It is asked for by anybody, and becomes part of a subject.
  if (dash < 1 || !ID_PATTERN.test(prefix) || !/^(0|[1-9]\d{0,5})$/.test(digits)) return undefined;
  return { prefix, sampleIndex: Number(digits) };
}

/** The session part of a record, which is always set. */
export function sessionOf(record: SessionRecord): Session {
  if (record.session === undefined) throw new Error('a session record without its session');
  return record.session;
}

/** Name of a task's harness, or the import_path of its plug-in. */
export const harnessOf = ({ harness }: TaskSpec): string => harness?.name || (harness?.importPath ?? '');

/** What a task implies for each of its sessions until it has a record of its own. */
export function queuedSession(task: TaskRecord, spec: TaskSpec, sampleIndex: number): SessionRecord {
  return create(SessionRecordSchema, {
    session: create(SessionSchema, {
      sessionId: sessionIdOf(task.sessionPrefix, sampleIndex),
      taskId: task.taskId,
      groupId: GROUP_ID,
      sampleIndex,
      state: SessionState.QUEUED,
      harness: harnessOf(spec),
      createTime: timestampFromMs(Number(task.createMs)),
    }),
    stateMs: task.createMs,
  });
}

export interface Place {
  readonly nodeId: string;
  readonly bootId: string;
}

/** QUEUED → PREPARING: the next attempt, on a node. */
export function dispatched(record: SessionRecord, { nodeId, bootId }: Place, nowMs: number): SessionRecord {
  const { failure: _, ...session } = sessionOf(record);
  const attempt = session.attempt + 1;
  const begun = create(AttemptSchema, { attempt, nodeId, startTime: timestampFromMs(nowMs) });
  return create(SessionRecordSchema, {
    session: {
      ...session,
      state: SessionState.PREPARING,
      attempt,
      nodeId,
      times: create(StageTimesSchema, { queueMs: sinceState(record, nowMs) }),
      attempts: [...remembered(session.attempts), begun],
    },
    bootId,
    stateMs: BigInt(nowMs),
    attemptBase: record.attemptBase,
  });
}

/** READY → RUNNING. */
export const running = (record: SessionRecord, nowMs: number): SessionRecord => ({
  ...moved(record, SessionState.RUNNING, nowMs, { readyMs: sinceState(record, nowMs) }),
});

/** The same record in another state, with stage times added. */
export function moved(
  record: SessionRecord,
  state: SessionState,
  nowMs: number,
  times: Partial<Omit<StageTimes, '$typeName'>>,
): SessionRecord {
  return {
    ...record,
    session: { ...sessionOf(record), state, times: timesWith(record, times) },
    stateMs: BigInt(nowMs),
  };
}

export const timesWith = (
  record: SessionRecord,
  times: Partial<Omit<StageTimes, '$typeName'>>,
): StageTimes => ({ ...(sessionOf(record).times ?? create(StageTimesSchema)), ...times });

/** The same with what a stage of the present attempt was not let connect to. */
export function withDenied(record: SessionRecord, denied: DeniedConnections | undefined): SessionRecord {
  if (denied === undefined) return record;
  const session = sessionOf(record);
  const attempts = session.attempts.map((attempt) =>
    attempt.attempt === session.attempt ? { ...attempt, denied: added(attempt.denied, denied) } : attempt,
  );
  return { ...record, session: { ...session, attempts } };
}

function added(before: DeniedConnections | undefined, more: DeniedConnections): DeniedConnections {
  if (before === undefined) return more;
  const targets = [...new Set([...before.targets, ...more.targets])].slice(0, DENIED_TARGETS_MAX);
  return { ...before, count: before.count + more.count, targets };
}

/** An attempt lost to infrastructure: QUEUED again behind a pause or, after the last attempt, ENDED without a reward. */
export function attemptLost(
  record: SessionRecord,
  why: Failure,
  maxAttempts: number,
  nowMs: number,
): SessionRecord {
  const session = sessionOf(record);
  const attempts = attemptsEnded(record, why, nowMs);
  const stopped = attempts.filter((one) => one.attempt > record.attemptBase && !isCounted(one)).length;
  const count = session.attempt - record.attemptBase - stopped;
  if (count >= maxAttempts || session.attempt >= ATTEMPTS_PER_SESSION_MAX) {
    return ended(record, Outcome.INFRASTRUCTURE_ERROR, nowMs, why);
  }
  const { stats: _, ...kept } = session;
  return create(SessionRecordSchema, {
    session: {
      ...kept,
      state: SessionState.QUEUED,
      nodeId: '',
      failure: bounded(why),
      attempts,
    },
    stateMs: BigInt(nowMs),
    notBeforeMs: BigInt(nowMs + ATTEMPT_BACKOFF_MS * count),
    attemptBase: record.attemptBase,
  });
}

/** ENDED → QUEUED on request, in a group that is not announced yet. What came of it before is in its attempts. */
export function retried(record: SessionRecord, groupId: string, nowMs: number): SessionRecord {
  const { stats: _, reward: __, endTime: ___, ...kept } = sessionOf(record);
  return create(SessionRecordSchema, {
    session: { ...kept, groupId, state: SessionState.QUEUED, outcome: Outcome.UNSPECIFIED, nodeId: '' },
    stateMs: BigInt(nowMs),
    attemptBase: kept.attempt,
  });
}

/** The same state, in a later group: its own does not wait for it any more. */
export const carriedOver = (record: SessionRecord, groupId: string): SessionRecord => ({
  ...record,
  session: { ...sessionOf(record), groupId },
});

/** Any state → ENDED. Only an outcome whose trajectory counts keeps what was built, and only a graded one a reward. */
export function ended(record: SessionRecord, outcome: Outcome, nowMs: number, why?: Failure): SessionRecord {
  const { stats, reward: _, failure: __, ...session } = sessionOf(record);
  const counts = outcome !== Outcome.INFRASTRUCTURE_ERROR && outcome !== Outcome.CANCELLED;
  const reward = isScored(outcome) ? record.evaluated?.reward : undefined;
  const createdMs = session.createTime === undefined ? nowMs : timestampMs(session.createTime);
  const totalMs = BigInt(Math.max(0, nowMs - createdMs));
  return create(SessionRecordSchema, {
    session: {
      ...session,
      state: SessionState.ENDED,
      outcome,
      attempts: attemptsEnded(record, why, nowMs),
      times: timesWith(record, { ...spentIn(record, nowMs), totalMs }),
      endTime: timestampFromMs(nowMs),
      ...(why && { failure: bounded(why) }),
      ...(counts && stats && { stats }),
      ...(reward !== undefined && { reward }),
    },
    bootId: record.bootId,
    stateMs: BigInt(nowMs),
    attemptBase: record.attemptBase,
    // By which a replay is known.
    ...(record.opened && { opened: record.opened }),
    ...(record.closed && { closed: { ...record.closed, traceRewards: {} } }),
    ...(counts && record.built && { built: record.built }),
    ...(counts && record.evaluated && { evaluated: record.evaluated }),
    ...(counts && record.graded && { graded: record.graded }),
  });
}

/** Not ENDED → ENDED as CANCELLED. `what` was cancelled. */
export const cancelled = (record: SessionRecord, nowMs: number, what = 'task'): SessionRecord =>
  ended(record, Outcome.CANCELLED, nowMs, failure('CANCELLED', `the ${what} was cancelled`));

/** Not ENDED → ENDED because its group has enough without it. */
export function stoppedEarly(record: SessionRecord, usable: number, nowMs: number): SessionRecord {
  const why = failure('EARLY_STOPPED', `its group had ${usable} usable sessions and did not wait for it`);
  return ended(record, Outcome.CANCELLED, nowMs, why);
}

/** Whether the attempt's sandbox is still used: not after the run once nothing is left to grade. */
export function needsSandbox(record: SessionRecord, spec: TaskSpec): boolean {
  if (record.opened !== undefined) return false;
  switch (sessionOf(record).state) {
    case SessionState.PREPARING:
    case SessionState.READY:
    case SessionState.RUNNING:
      return true;
    case SessionState.FINISHING:
      return needsEvaluation(record, spec);
    default:
      return false;
  }
}

/** Whether a session that has run waits for its verdict. */
export const needsEvaluation = (record: SessionRecord, spec: TaskSpec): boolean =>
  spec.evaluator !== undefined &&
  record.evaluated === undefined &&
  record.evaluateFailure === undefined &&
  !isAbandoned(record);

/** Whether the attempt runs elsewhere: a caller has it, or has just closed it. */
export const isOpen = (record: SessionRecord): boolean =>
  record.opened !== undefined && sessionOf(record).state === SessionState.RUNNING;

/** Whether nobody said how such an attempt ended: it may have been lost with its machine, and is not graded. */
export const isAbandoned = ({ closed }: SessionRecord): boolean => closed?.outcome === Outcome.TIMEOUT;

/** Unix time in milliseconds of the last change of a session that causes work. */
export const changeMs = ({ stateMs, closed }: SessionRecord): number =>
  Number(closed === undefined ? stateMs : closed.closeMs > stateMs ? closed.closeMs : stateMs);

export const isEnded = (record: SessionRecord): boolean => sessionOf(record).state === SessionState.ENDED;

/** The present attempt, as it stands in work, facts and revocations. */
export function refOf(record: SessionRecord): AttemptRef {
  const { sessionId, attempt, nodeId, taskId, sampleIndex } = sessionOf(record);
  const { bootId } = record;
  return create(AttemptRefSchema, { sessionId, attempt, nodeId, bootId, taskId, sampleIndex });
}

const isScored = (outcome: Outcome): boolean =>
  outcome === Outcome.COMPLETED || outcome === Outcome.TIMEOUT || outcome === Outcome.HARNESS_ERROR;

const sinceState = (record: SessionRecord, nowMs: number): bigint =>
  BigInt(Math.max(0, nowMs - Number(record.stateMs)));

/** Of a session's record: a commit of it alone is one message of NATS, of at most 1 MiB. */
export const SESSION_BYTES_MAX = 768 * 1024;

export const sessionBytes = (record: SessionRecord): number =>
  toBinary(SessionRecordSchema, record).byteLength;

/** A failure whose message cannot make a record large. */
export const bounded = (why: Failure): Failure =>
  why.message.length <= FAILURE_MESSAGE_CHARS_MAX
    ? why
    : { ...why, message: why.message.slice(0, FAILURE_MESSAGE_CHARS_MAX) };

function attemptsEnded(record: SessionRecord, why: Failure | undefined, nowMs: number): Attempt[] {
  const session = sessionOf(record);
  return session.attempts.map((attempt) =>
    attempt.attempt !== session.attempt || attempt.endTime !== undefined
      ? attempt
      : {
          ...attempt,
          endTime: timestampFromMs(nowMs),
          times: timesWith(record, spentIn(record, nowMs)),
          ...(why && { failure: bounded(why) }),
        },
  );
}

/** Time in the stage that an attempt is in. */
function spentIn(record: SessionRecord, nowMs: number): Partial<Omit<StageTimes, '$typeName'>> {
  switch (sessionOf(record).state) {
    case SessionState.PREPARING:
      return { prepareMs: sinceState(record, nowMs) };
    case SessionState.READY:
      return { readyMs: sinceState(record, nowMs) };
    case SessionState.RUNNING:
      return { runMs: sinceState(record, nowMs) };
    default:
      return {};
  }
}
