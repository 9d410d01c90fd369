// HTTP status of a failure; what a harness retries and what it does not follows from it.
import type { PolarError, Reason } from '../../common/errors.ts';

const STATUS: Partial<Record<Reason, number>> = {
  CAPABILITY_INVALID: 401,
  SESSION_CLOSED: 410,
  NOT_FOUND: 404,
  DIALECT_INVALID: 400,
  INVALID_REQUEST: 400,
  BODY_TOO_LARGE: 413,
  ENGINE_REFUSED: 400,
  CALLS_IN_FLIGHT_LIMIT: 429,
  POOL_SESSIONS_LIMIT: 429,
  ENGINE_BUSY: 429,
  // No later try can succeed, so none is asked for.
  CALLS_PER_ATTEMPT_LIMIT: 403,
  ENGINE_ERROR: 502,
  ENGINE_NO_TOKEN_IDS: 502,
  ENGINE_STREAM_CUT: 502,
  ENGINE_TIMEOUT: 504,
  ENGINE_UNAVAILABLE: 503,
  RECORD_NOT_WRITTEN: 503,
  NATS_UNAVAILABLE: 503,
  NATS_STORE_FULL: 503,
  SHUTTING_DOWN: 503,
  POLICY_PAUSED: 503,
};

export const statusOf = (error: PolarError): number => STATUS[error.reason] ?? 500;
