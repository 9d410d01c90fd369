// How a session ends whose harness runs elsewhere: as its caller says, or with its time.
import { create } from '@bufbuild/protobuf';
import { type Closed, ClosedSchema } from '../../../gen/ts/polar/event/v1/external_session_pb.js';
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import type { CloseSessionRequest } from '../../../gen/ts/polar/scheduler/v1/external_session_pb.js';
import { type FieldFault, failure, PolarError } from '../../common/errors.ts';
import { sha256 } from '../../common/ids.ts';
import { REWARD_MAX } from '../../common/specs/external.ts';
import { isOpen, Outcome, sessionOf } from './session.ts';

const MESSAGE_CHARS_MAX = 2_000;
/** Calls that one end may reward, as an evaluator may. */
const REWARDED_CALLS_MAX = 2_048;
const CALL_ID = /^[\w.-]{1,128}$/;
/** Faults of rewards that are told, of many. */
const FAULTS_MAX = 100;

export type CloseRequest = Pick<
  CloseSessionRequest,
  'sessionId' | 'attempt' | 'outcome' | 'reward' | 'message' | 'traceRewards'
>;

/** What is wrong with it, by field. */
export function closeFaults(request: CloseRequest, hasEvaluator: boolean): FieldFault[] {
  const { outcome, reward, message } = request;
  const faults: FieldFault[] = [];
  const fault = (field: string, description: string): number => faults.push({ field, description });
  if (![Outcome.UNSPECIFIED, Outcome.COMPLETED, Outcome.HARNESS_ERROR].includes(outcome)) {
    fault('outcome', 'must be COMPLETED or HARNESS_ERROR');
  }
  if (reward !== undefined && !isReward(reward)) fault('reward', REWARD_RULE);
  if (reward !== undefined && hasEvaluator) fault('reward', 'is given by the evaluator of its task');
  if (message.length > MESSAGE_CHARS_MAX) fault('message', `must be at most ${MESSAGE_CHARS_MAX} characters`);
  if (message !== '' && outcome !== Outcome.HARNESS_ERROR) fault('message', 'is for outcome HARNESS_ERROR');
  return [...faults, ...traceFaults(request)];
}

const isReward = (reward: number): boolean => Math.abs(reward) <= REWARD_MAX;
const REWARD_RULE = `must be a number from -${REWARD_MAX} to ${REWARD_MAX}`;

function traceFaults({ reward, traceRewards }: CloseRequest): FieldFault[] {
  const entries = Object.entries(traceRewards);
  const of = (description: string): FieldFault[] => [{ field: 'trace_rewards', description }];
  if (entries.length > 0 && reward === undefined) return of('stand beside a reward, which there is none of');
  if (entries.length > REWARDED_CALLS_MAX) return of(`are at most ${REWARDED_CALLS_MAX}`);
  const wrong = entries.filter(([callId, one]) => !isReward(one) || !CALL_ID.test(callId));
  return wrong.slice(0, FAULTS_MAX).map(([callId, one]) => ({
    field: `trace_rewards.${callId.slice(0, 128)}`,
    description: isReward(one) ? 'is no id of a call' : REWARD_RULE,
  }));
}

/**
 * The record of a session that its caller closes; the same record where it was closed so before. Throws SESSION_CLOSED
 * where that attempt is not its caller's any more.
 */
export function closedAs(record: SessionRecord, request: CloseRequest, nowMs: number): SessionRecord {
  const { attempt } = sessionOf(record);
  const closed = closedOf(request, nowMs);
  const isIts = record.opened !== undefined && request.attempt === attempt;
  if (isIts && record.closed !== undefined && isSame(record.closed, closed)) return record;
  checkOpenAs(record, request.attempt);
  return { ...record, closed };
}

/** Throws SESSION_CLOSED where it is not open as that attempt, or is being closed. */
export function checkOpenAs(record: SessionRecord, asked: number): void {
  const { attempt, sessionId } = sessionOf(record);
  if (asked === attempt && isOpen(record) && record.closed === undefined) return;
  throw closedError(`attempt ${asked} of ${sessionId} is not open${whyNot(record)}`);
}

function closedOf({ outcome, reward, message, traceRewards }: CloseRequest, nowMs: number): Closed {
  const failed = outcome === Outcome.HARNESS_ERROR;
  return create(ClosedSchema, {
    outcome: failed ? outcome : Outcome.COMPLETED,
    ...(failed && { failure: failure('HARNESS_EXIT', message || 'its caller closed it as failed') }),
    ...(reward !== undefined && { reward }),
    closeMs: BigInt(nowMs),
    traceRewards,
    traceRewardsSha256: digestOf(traceRewards),
  });
}

/** In whatever order they came. */
function digestOf(traceRewards: CloseRequest['traceRewards']): string {
  const entries = Object.entries(traceRewards).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? '' : sha256(JSON.stringify(entries));
}

const isSame = (a: Closed, b: Closed): boolean =>
  a.outcome === b.outcome &&
  a.reward === b.reward &&
  a.failure?.message === b.failure?.message &&
  a.traceRewardsSha256 === b.traceRewardsSha256;

/** For who asks again for what it has opened. */
export function overError(record: SessionRecord): PolarError {
  const { sessionId } = sessionOf(record);
  return closedError(`what this request_id opened of ${sessionId} is over${whyNot(record)}`);
}

const closedError = (message: string): PolarError => new PolarError('SESSION_CLOSED', message);

function whyNot(record: SessionRecord): string {
  const { outcome, reward } = record.closed ?? {};
  if (outcome !== undefined) {
    const worth = reward === undefined ? 'without a reward' : `with reward ${reward}`;
    return `: it was closed as ${Outcome[outcome]} ${worth}`;
  }
  const { message } = sessionOf(record).failure ?? {};
  return message === undefined ? '' : `: ${message}`;
}

/** Its time is over, and nobody has closed it. */
export function outOfTime(record: SessionRecord, nowMs: number): SessionRecord {
  const why = failure('HARNESS_TIMEOUT', 'nobody had closed it when its run budget was spent');
  const closed = create(ClosedSchema, { outcome: Outcome.TIMEOUT, failure: why, closeMs: BigInt(nowMs) });
  return { ...record, closed };
}
