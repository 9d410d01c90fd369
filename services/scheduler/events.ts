// What the scheduler tells: one function for each business event, one log line each; and what is counted of it.
import type { LeaseRecord, SessionRecord } from '../../gen/ts/polar/event/v1/state_pb.js';
import type { Fact, Heartbeat } from '../../gen/ts/polar/event/v1/work_pb.js';
import type { PolarError } from '../common/errors.ts';
import type { Logger } from '../common/logger.ts';
import type { Engine, Pressure } from './domain/engines.ts';
import type { NodeNews, NodeState } from './domain/nodes.ts';
import { Outcome, SessionState, sessionOf } from './domain/session.ts';
import type { SessionChange, TaskState } from './domain/state.ts';
import * as metrics from './metrics.ts';

export interface TookOver {
  readonly epoch: number;
  readonly tail: number;
  readonly tasks: number;
  readonly live_sessions: number;
  readonly duration_ms: number;
}

export const tookOver = (log: Logger, told: TookOver): void => log.info(told, 'took over the state log');

export const following = (log: Logger, { holder, publicUrl }: LeaseRecord): void =>
  log.info({ holder, leader_url: publicUrl }, 'following');

export const fenced = (log: Logger, error: PolarError): void =>
  log.error({ reason: error.reason, err: error }, 'state log closed to this scheduler');

export function taskSubmitted(log: Logger, task: TaskState): void {
  const { taskId, numSamples } = task.record;
  log.info({ task_id: taskId, sessions: numSamples }, 'task submitted');
  metrics.taskSubmitted(task);
}

export const taskCancelled = (log: Logger, { record }: TaskState, sessions: number): void =>
  log.info({ task_id: record.taskId, sessions }, 'task cancelled');

export const groupAnnounced = (log: Logger, { record, byOutcome }: TaskState): void =>
  log.info({ task_id: record.taskId, completed: byOutcome.get(Outcome.COMPLETED) ?? 0 }, 'group announced');

/** A session changed: ends, attempts that were lost and retries are told, the steps between on debug only. */
export function sessionChanged(log: Logger, change: SessionChange): void {
  const { before, after } = change;
  const { state, outcome, reward, failure } = sessionOf(after);
  const { state: from, nodeId } = sessionOf(before);
  const ids = idsOf(after);
  if (state === SessionState.ENDED) {
    log.info({ ...ids, outcome: Outcome[outcome], reward, reason: failure?.reason }, 'session ended');
    metrics.sessionEnded(change);
  } else if (from === SessionState.ENDED) {
    log.info(ids, 'session goes again on request');
  } else if (state === SessionState.QUEUED) {
    // It has left the node where the attempt was.
    const lost = { ...ids, node_id: nodeId, reason: failure?.reason, problem: failure?.message };
    log.warn({ ...lost, from: SessionState[from] }, 'attempt lost');
    metrics.attemptLost(change);
  } else {
    log.debug({ ...ids, state: SessionState[state] }, 'session moved');
  }
}

function idsOf(record: SessionRecord): object {
  const { taskId, sessionId, attempt, nodeId } = sessionOf(record);
  return { task_id: taskId, session_id: sessionId, attempt, node_id: nodeId };
}

export const factStale = (log: Logger, { ref, kind }: Fact): void =>
  log.debug(
    { session_id: ref?.sessionId, attempt: ref?.attempt, node_id: ref?.nodeId, kind: kind.case },
    'stale fact dropped',
  );

export const nodeSeen = (log: Logger, { nodeId, bootId, runSlots }: Heartbeat, news: NodeNews): void => {
  const about = { node_id: nodeId, boot_id: bootId, run_slots: runSlots, news };
  if (news === 'taken') log.warn(about, 'node refused: another machine has its id');
  else log.info(about, 'node seen');
};

export const nodeLost = (log: Logger, nodeId: string, attempts: number): void =>
  log.warn({ node_id: nodeId, attempts }, 'node lost');

export const nodePaused = (log: Logger, { id, failures: { count, reason } }: NodeState): void =>
  log.warn({ node_id: id, failures: count, reason }, 'node paused: it fails again and again');

export const callbackDelivered = (log: Logger, id: string): void =>
  log.info({ callback: id }, 'callback delivered');

export const callbackFailed = (log: Logger, id: string, error: PolarError): void =>
  log.warn({ callback: id, reason: error.reason, err: error }, 'callback failed, will be tried again');

export const callbackGivenUp = (log: Logger, id: string, error: PolarError): void =>
  log.error({ callback: id, reason: error.reason, err: error }, 'callback given up');

export const nodeDrained = (log: Logger, nodeId: string, draining: boolean): void =>
  log.info({ node_id: nodeId, draining }, 'node drained');

export const sessionsRetried = (log: Logger, { record }: TaskState, sessions: number): void =>
  log.info({ task_id: record.taskId, sessions }, 'sessions retried');

export const taskCancelledAhead = (log: Logger, taskId: string): void =>
  log.info({ task_id: taskId }, 'task cancelled ahead');

export const heartbeatInvalid = (log: Logger, error: unknown): void =>
  log.warn({ err: error }, 'heartbeat not understood');

export const engineLimitChanged = (log: Logger, { name, limit }: Engine, told: Pressure): void =>
  log.info(
    { engine: name, sessions: limit, calls_waiting: told.callsWaiting, cache_use: told.cacheUse },
    'engine takes another number of sessions',
  );

export const pressureInvalid = (log: Logger, error: unknown): void =>
  log.warn({ err: error }, 'word about an engine not understood');

export const sideEffectFailed = (log: Logger, error: PolarError, tries: number): void =>
  log.warn({ reason: error.reason, tries, err: error }, 'side effect failed, will be tried again');

export const snapshotWritten = (log: Logger, seq: number, sizeBytes: number): void =>
  log.info({ seq, size_bytes: sizeBytes }, 'snapshot written');

export const snapshotFailed = (log: Logger, error: PolarError): void =>
  log.error({ reason: error.reason, err: error }, 'snapshot failed');

export const stateLogWaits = (log: Logger, error: unknown): void =>
  log.warn({ err: error }, 'state log does not answer');

export const blobsSwept = (log: Logger, blobs: number): void =>
  log.info({ blobs }, 'removed blobs that nothing names');

export const sweepFailed = (log: Logger, error: PolarError): void =>
  log.warn({ reason: error.reason, err: error }, 'sweep of blobs failed, will be tried again');
