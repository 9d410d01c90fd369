// One function for each business event: one log line, and what is counted of it. No prompt, reply, credential or token is ever among the fields.

import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { Policy_Phase } from '../../gen/ts/polar/event/v1/policy_pb.js';
import { asPolarError } from '../common/errors.ts';
import type { Logger } from '../common/logger.ts';
import type { PolicyState } from '../common/nats/policy.ts';
import type { Closed } from './attempts/attempt.ts';
import type { AttemptKey } from './attempts/record-log.ts';
import * as metrics from './metrics.ts';

const keyFields = ({ sessionId, attempt }: AttemptKey): object => ({ session_id: sessionId, attempt });

/** Not told by default: the record says all of it, and a busy proxy has thousands a second. */
export function callRecorded(log: Logger, key: AttemptKey, record: Completion): void {
  metrics.callRecorded(record);
  if (!log.isLevelEnabled('debug')) return;
  log.debug(
    {
      ...keyFields(key),
      call_id: record.callId,
      index: record.index,
      base_index: record.baseIndex,
      prompt_length: record.promptLength,
      sampled_length: record.sampledIds.byteLength / 4,
      finish_reason: record.finishReason,
      total_ms: record.times?.totalMs,
    },
    'call recorded',
  );
}

/** The engine's count of sampled tokens is not that of the ids it returned. */
export function usageDiffers(log: Logger, key: AttemptKey, callId: string, usage: number, ids: number): void {
  const fields = { ...keyFields(key), call_id: callId, usage_tokens: usage, sampled_length: ids };
  log.warn(fields, 'usage differs from sampled ids');
  metrics.usageDiffers.inc();
}

export function callFailed(log: Logger, key: AttemptKey, callId: string, error: unknown): void {
  const { reason } = asPolarError(error);
  // What is not typed is a fault of this program and is told with its stack.
  const fault = reason === 'INTERNAL' ? { err: error } : {};
  log.warn({ ...keyFields(key), call_id: callId, reason, ...fault }, 'call failed');
  metrics.callFailed(reason);
}

/** A request that did not become a call. */
export function requestRefused(log: Logger, error: unknown): void {
  const { reason } = asPolarError(error);
  if (reason === 'INTERNAL') log.error({ reason, err: error }, 'request refused');
  else log.info({ reason }, 'request refused');
  metrics.requestRefused(reason);
}

export function sessionClosed(log: Logger, key: AttemptKey, closed: Closed): void {
  log.info({ ...keyFields(key), calls: closed.calls, reason: closed.lastFailure?.reason }, 'session closed');
}

export function engineDrained(log: Logger, engine: string, draining: boolean): void {
  log.info({ engine, draining }, 'engine drained');
}

/** A scheduler in front of the engines goes on keeping what it keeps for the session. */
export function sessionNotEnded(log: Logger, key: AttemptKey, error: unknown): void {
  log.warn({ ...keyFields(key), reason: asPolarError(error).reason }, 'session end not told');
}

export function capabilityRevoked(log: Logger, key: AttemptKey): void {
  log.info(keyFields(key), 'capability revoked');
}

export function watchInterrupted(log: Logger, error: unknown): void {
  log.warn({ err: error }, 'capability watch interrupted');
}

/** Calls are held, go on, or another version is published. */
export function policyChanged(log: Logger, { policy, revision }: PolicyState): void {
  const fields = {
    phase: Policy_Phase[policy.phase],
    policy_version: String(policy.policyVersion),
    pause_id: policy.pauseId,
  };
  log.info({ ...fields, revision }, 'policy changed');
}

/** Sessions are to follow the load of an engine that does not tell it; said once. */
export function engineTellsNoLoad(log: Logger, engine: string): void {
  log.warn({ engine }, 'engine has no /metrics: its own queue is not seen');
}

/** Token mode could not render what is new; the call goes on in text mode. */
export function renderFailed(log: Logger, error: unknown): void {
  log.warn({ err: error }, 'rendering failed');
}

/** A request that is equal to one in flight shares its reply. */
export function callJoined(log: Logger, key: AttemptKey): void {
  log.info(keyFields(key), 'call joined');
  metrics.callsJoined.inc();
}

/** A call was given up for a pause before the harness had seen anything, and waits to be asked again. */
export function callHeld(log: Logger, key: AttemptKey, callId: string): void {
  log.info({ ...keyFields(key), call_id: callId }, 'call held');
  metrics.callsHeld.inc();
}
