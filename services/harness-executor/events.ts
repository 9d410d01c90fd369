// What the harness executor has to say: one function, one line; and what is counted of it.
import type { AttemptRef } from '../../gen/ts/polar/event/v1/work_pb.js';
import type { PolarError } from '../common/errors.ts';
import { attemptFields, type Logger } from '../common/logger.ts';
import type { InstallEvents } from './installs/install.ts';
import * as metrics from './metrics.ts';

export function runStarted(log: Logger, ref: AttemptRef, harness: string): void {
  log.info({ ...attemptFields(ref), harness }, 'harness started');
  metrics.runsStarted.inc({ harness });
}

export function runEnded(
  log: Logger,
  ref: AttemptRef,
  end: { outcome: string; exit_code: number; calls: number; duration_ms: number },
): void {
  log.info({ ...attemptFields(ref), ...end }, 'harness ended');
  metrics.runsEnded.inc({ outcome: end.outcome.toLowerCase() });
  metrics.runSeconds.observe(end.duration_ms / 1_000);
}

export function runFailed(log: Logger, ref: AttemptRef, reason: string, message: string): void {
  log.warn({ ...attemptFields(ref), reason, problem: message }, 'run failed');
  metrics.runsFailed.inc({ reason });
}

/** `reason`: why it counts for nothing; empty where it counts. */
export const closed = (log: Logger, ref: AttemptRef, reason: string): void =>
  log.info({ ...attemptFields(ref), reason }, 'session closed that ran elsewhere');

export const endNotTold = (log: Logger, ref: AttemptRef, error: unknown): void =>
  log.warn({ ...attemptFields(ref), err: error }, 'the end of a run cannot be told yet');

export const installNotTold = (log: Logger, ref: AttemptRef, error: unknown): void =>
  log.warn({ ...attemptFields(ref), err: error }, 'that a run waits for its harness cannot be told yet');

export const runRedelivered = (log: Logger, ref: AttemptRef): void =>
  log.warn(attemptFields(ref), 'run delivered again');

export const closeRetried = (log: Logger, ref: AttemptRef, error: PolarError): void =>
  log.warn({ ...attemptFields(ref), reason: error.reason }, 'closing the session is tried again');

export const capabilityNotRevokedYet = (log: Logger, ref: AttemptRef, error: unknown): void =>
  log.warn({ ...attemptFields(ref), err: error }, 'capability cannot be deleted yet');

export const capabilityNotRevoked = (log: Logger, ref: AttemptRef, error: unknown): void =>
  log.warn({ ...attemptFields(ref), err: error }, 'capability left to its expiry');

export const logNotKept = (log: Logger, ref: AttemptRef, error: unknown): void =>
  log.warn({ ...attemptFields(ref), err: error }, 'harness output not kept');

export const artifactsNotKept = (log: Logger, ref: AttemptRef, error: unknown): void =>
  log.warn({ ...attemptFields(ref), err: error }, 'files of the sandbox not kept');

export const installEvents = (log: Logger): InstallEvents => ({
  started: (harness, version) => log.info({ harness, version }, 'harness installation started'),
  progress: (harness, elapsedMs) =>
    log.info({ harness, elapsed_ms: elapsedMs }, 'harness is being installed'),
  done: (harness, elapsedMs) => log.info({ harness, elapsed_ms: elapsedMs }, 'harness installed'),
});
