// Nodes that fail: one that has lost several attempts in a row to infrastructure is paused, ever longer, and between the
// pauses tried with one session at a time, until one goes well. Otherwise the node that fails fastest, and so is the least
// loaded, would take the whole queue. Kept in memory only.
import type { SessionRecord } from '../../../gen/ts/polar/event/v1/state_pb.js';
import { Boundary, type Reason } from '../../common/errors.ts';
import { Outcome, SessionState, sessionOf } from './session.ts';

/** Attempts that a node loses in a row before it is paused. */
export const NODE_FAILURES_MAX = 3;
/** The first pause; doubles with each further failure. */
export const NODE_PAUSE_MS = 1_000;
/** The longest: a node that is mended takes sessions again after at most this. */
export const NODE_PAUSE_MAX_MS = 30_000;
/** Runs that were lost say nothing any more when none was for so long: those that go well may take hours to their end. */
export const RUN_FAILURES_KEPT_MS = 2 * NODE_PAUSE_MAX_MS;

/** Attempts in a row that a node has lost. */
export interface Failures {
  readonly count: number;
  /** Of the last one. */
  readonly reason: string;
  /** The last one was prepared by then, and lost by the node: that others are prepared, too, says nothing. */
  readonly inRun: boolean;
  /** Of the last one; by the clock of the records, in milliseconds. */
  readonly atMs: number;
  /** By the same clock; 0 while it is not paused. */
  readonly pausedUntilMs: number;
}

export const NO_FAILURES: Failures = { count: 0, reason: '', inRun: false, atMs: 0, pausedUntilMs: 0 };

/** The task, the store or who stopped it may be to blame; and what ends by its budget eats no queue. */
const NOT_OF_THE_NODE: readonly Reason[] = [
  'PREPARE_TIMEOUT',
  'STAGE_TIMEOUT',
  'ENGINE_TIMEOUT',
  'BLOB_MISSING',
  'SHUTTING_DOWN',
];

/** What runs end with, all at once, as their executor does. */
const OF_A_RESTART: Reason = 'EXECUTOR_LOST';

/** After a session went from one state to another there. What began before a pause and fails in it does not make it longer. */
export function failuresAfter(failures: Failures, before: SessionRecord, after: SessionRecord): Failures {
  if (wentWell(failures, before, after)) return NO_FAILURES;
  if (failures.pausedUntilMs > 0 || !hasFailed(before, after)) return failures;
  const count = failures.count + 1;
  const atMs = Number(after.stateMs);
  const pausedUntilMs = count < NODE_FAILURES_MAX ? 0 : atMs + pauseMs(count);
  const { boundary, reason = '' } = sessionOf(after).failure ?? {};
  // A task may name engines that are away, and an executor that began anew is there: others go on.
  const passes = boundary === Boundary.PROVIDER || reason === OF_A_RESTART;
  const inRun = sessionOf(before).state !== SessionState.PREPARING && !passes;
  return { count, reason, inRun, atMs, pausedUntilMs };
}

/** After a pause that is over. What lies ahead of all that can be was before the clock was put back. */
export function resumed(failures: Failures, nowMs: number): Failures {
  const { inRun, atMs, pausedUntilMs } = failures;
  if (inRun && (nowMs - atMs > RUN_FAILURES_KEPT_MS || atMs - nowMs > RUN_FAILURES_KEPT_MS))
    return NO_FAILURES;
  const isOver = pausedUntilMs <= nowMs || pausedUntilMs > nowMs + NODE_PAUSE_MAX_MS;
  return isOver ? { ...failures, pausedUntilMs: 0 } : failures;
}

export const isFailing = ({ count }: Failures): boolean => count >= NODE_FAILURES_MAX;

/** Whether it gets one more session beside those that it prepares. */
export const mayTry = (failures: Failures, preparing: number): boolean =>
  !isFailing(failures) || (failures.pausedUntilMs === 0 && preparing === 0);

const pauseMs = (count: number): number =>
  Math.min(NODE_PAUSE_MAX_MS, NODE_PAUSE_MS * 2 ** (count - NODE_FAILURES_MAX));

function wentWell({ inRun }: Failures, before: SessionRecord, after: SessionRecord): boolean {
  const [from, to] = [sessionOf(before).state, sessionOf(after).state];
  return (
    (from === SessionState.PREPARING && to === SessionState.READY && !inRun) ||
    (from === SessionState.RUNNING && to === SessionState.FINISHING)
  );
}

function hasFailed(before: SessionRecord, after: SessionRecord): boolean {
  const { state, outcome, failure } = sessionOf(after);
  const isLost = state === SessionState.QUEUED || outcome === Outcome.INFRASTRUCTURE_ERROR;
  return isOnNode(before) && isLost && !NOT_OF_THE_NODE.some((reason) => reason === failure?.reason);
}

/** What comes after the run is not of the node alone. */
function isOnNode(record: SessionRecord): boolean {
  const { state } = sessionOf(record);
  return state === SessionState.PREPARING || state === SessionState.READY || state === SessionState.RUNNING;
}
