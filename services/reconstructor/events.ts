// What happens in the reconstructor, one log line each; and what is counted of it.
import type { SessionStats } from '../../gen/ts/polar/common/v1/session_pb.js';
import type { AttemptRef, Cursor } from '../../gen/ts/polar/event/v1/work_pb.js';
import type { PolarError } from '../common/errors.ts';
import { attemptFields, type Logger } from '../common/logger.ts';
import { floorOf } from './domain/cursor.ts';
import * as metrics from './metrics.ts';

export function trajectoryBuilt(log: Logger, ref: AttemptRef, stats: SessionStats, durationMs: number): void {
  const { calls, traces, trainedTokens, sampledTokens } = stats;
  const tokens = { trained_tokens: Number(trainedTokens), sampled_tokens: Number(sampledTokens) };
  log.info({ ...attemptFields(ref), calls, traces, ...tokens, duration_ms: durationMs }, 'trajectory built');
  metrics.trajectoryBuilt(stats, durationMs);
}

/** Tokens are not conserved between engine and records. */
export function usageDiffers(log: Logger, ref: AttemptRef, mismatches: number): void {
  log.warn({ ...attemptFields(ref), calls: mismatches }, 'sampled ids differ from engine usage');
  metrics.usageDiffers.inc(mismatches);
}

export function buildFailed(log: Logger, ref: AttemptRef, error: PolarError): void {
  log.error({ ...attemptFields(ref), reason: error.reason, err: error }, 'trajectory not built');
  metrics.buildsFailed.inc({ reason: error.reason });
}

/** A trajectory that was announced is gone; `what` is a session or the subject of a group. */
export function trajectoryLost(log: Logger, what: string, error: PolarError): void {
  log.error({ what, reason: error.reason, err: error }, 'trajectory lost');
}

/** A group of small trajectories goes without a pack. */
export function packFailed(log: Logger, subject: string, error: PolarError): void {
  log.warn({ subject, reason: error.reason, err: error }, 'group not packed');
}

export function streamOpened(log: Logger, consumer: string, cursor: Cursor): void {
  const floor = Number(floorOf(cursor));
  log.info({ consumer, floor, unacked: cursor.unacked.length }, 'trajectory stream opened');
}

/** Ended by its caller, or with an error. */
export function streamEnded(log: Logger, consumer: string, error: PolarError | undefined): void {
  log.info({ consumer, reason: error?.reason }, 'trajectory stream ended');
}

export function batchRemoved(log: Logger, consumer: string, batchId: number): void {
  log.warn({ consumer, batch_id: batchId }, 'batch was removed before it was acknowledged');
}

export function streamInterrupted(log: Logger, error: PolarError): void {
  log.warn({ reason: error.reason, err: error }, 'trajectory stream waits');
}

/** The trajectory stream has lost what this consumer was sent: a loss of power, or an older copy of the store. */
export function cursorClamped(log: Logger, consumer: string, sent: bigint, last: bigint): void {
  log.error({ consumer, sent: Number(sent), last: Number(last) }, 'cursor is ahead of the trajectory stream');
}

/** A filter left nothing of it for the trainer. */
export function batchDropped(log: Logger, consumer: string, batchId: number, reason: string): void {
  log.info({ consumer, batch_id: batchId, reason }, 'batch dropped by filter');
  metrics.batchesDropped.inc({ reason });
}

export function batchesAcked(log: Logger, consumer: string, batches: number): void {
  log.debug({ consumer, batches }, 'batches acknowledged');
  metrics.batchesAcked.inc(batches);
}

/** `why` is the trainer's own text. */
export function batchesNacked(
  log: Logger,
  consumer: string,
  batches: number,
  delayMs: number,
  why: string,
): void {
  log.info({ consumer, batches, delay_ms: delayMs, why }, 'batches given back');
  metrics.batchesNacked.inc(batches);
}

export function consumerSought(log: Logger, consumer: string, floor: number): void {
  log.info({ consumer, floor }, 'consumer sought');
}

export function consumerRemoved(log: Logger, consumer: string): void {
  log.info({ consumer }, 'consumer deleted');
}

/** Their batches go to the other streams that share the consumer. */
export function streamsLost(log: Logger, consumer: string, streams: number): void {
  log.warn({ consumer, streams }, 'streams of a shared consumer were not seen any more');
}

/** Acknowledged by all consumers, and old. */
export function groupsSwept(log: Logger, groups: number): void {
  log.info({ groups }, 'acknowledged groups removed');
}

export function sweepFailed(log: Logger, error: PolarError): void {
  log.warn({ reason: error.reason, err: error }, 'acknowledged groups not removed');
}
