// Every failure of the mesh: one catalogue of reasons, one error class, one way to each boundary's form.
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../gen/ts/google/rpc/error_details_pb.js';
import { Boundary, type Failure, FailureSchema } from '../../gen/ts/polar/common/v1/failure_pb.js';
import { shortened, shortFields } from './error-size.ts';
import { FAILURE_MESSAGE_CHARS_MAX } from './limits.ts';
import { tlsFault } from './tls/faults.ts';

export { Boundary };

interface ReasonSpec {
  readonly boundary: Boundary;
  readonly code: Code;
  /** The attempt is lost to infrastructure: no reward, a new attempt. */
  readonly infrastructure: boolean;
  /** Trying the same again can succeed. */
  readonly retryable: boolean;
}

const caller = (boundary: Boundary, code: Code): ReasonSpec => ({
  boundary,
  code,
  infrastructure: false,
  retryable: false,
});
const infra = (boundary: Boundary, code: Code = Code.Unavailable): ReasonSpec => ({
  boundary,
  code,
  infrastructure: true,
  retryable: true,
});

/** The catalogue. A reason decides boundary, Connect code, and whether a retry makes sense: never the message text. */
export const REASONS = {
  INVALID_CONFIG: caller(Boundary.MESH, Code.InvalidArgument),
  INVALID_TASK: caller(Boundary.TASK, Code.InvalidArgument),
  INVALID_REQUEST: caller(Boundary.MESH, Code.InvalidArgument),
  // On a session: the services' own token, which no task has a say in.
  UNAUTHENTICATED: { ...infra(Boundary.MESH, Code.Unauthenticated), retryable: false },
  SCOPE_MISSING: { ...infra(Boundary.MESH, Code.PermissionDenied), retryable: false },
  TLS_FAILED: { ...infra(Boundary.MESH, Code.Unauthenticated), retryable: false },
  NOT_FOUND: caller(Boundary.MESH, Code.NotFound),
  TASK_EXISTS: caller(Boundary.TASK, Code.AlreadyExists),
  LIVE_SESSIONS_LIMIT: { ...caller(Boundary.MESH, Code.ResourceExhausted), retryable: true },
  STATE_QUEUE_LIMIT: { ...caller(Boundary.MESH, Code.ResourceExhausted), retryable: true },
  WATCH_OVERFLOW: { ...caller(Boundary.MESH, Code.Aborted), retryable: true },
  BACKEND_NOT_OFFERED: caller(Boundary.SANDBOX, Code.FailedPrecondition),
  GPUS_NOT_OFFERED: caller(Boundary.SANDBOX, Code.FailedPrecondition),
  NOT_ENDED: caller(Boundary.MESH, Code.FailedPrecondition),
  CANCELLED: caller(Boundary.TASK, Code.Canceled),
  TASK_CANCELLED: caller(Boundary.TASK, Code.FailedPrecondition),
  ATTEMPTS_LIMIT: caller(Boundary.TASK, Code.ResourceExhausted),
  NO_SESSION_WAITS: caller(Boundary.TASK, Code.FailedPrecondition),
  NO_NODE: { ...caller(Boundary.MESH, Code.Unavailable), retryable: true },
  EARLY_STOPPED: caller(Boundary.TASK, Code.Canceled),
  QUEUE_TIMEOUT: { ...infra(Boundary.MESH, Code.DeadlineExceeded) },
  CALLBACK_FAILED: { ...caller(Boundary.TASK, Code.Unavailable), retryable: true },
  CALLBACK_REFUSED: caller(Boundary.TASK, Code.FailedPrecondition),
  STREAM_REPLACED: caller(Boundary.MESH, Code.Aborted),
  STREAM_LAPSED: { ...caller(Boundary.MESH, Code.Aborted), retryable: true },
  CONSUMERS_LIMIT: caller(Boundary.MESH, Code.ResourceExhausted),
  STREAMS_LIMIT: { ...caller(Boundary.MESH, Code.ResourceExhausted), retryable: true },
  EXPORTS_LIMIT: { ...caller(Boundary.MESH, Code.ResourceExhausted), retryable: true },
  NACKS_LIMIT: { ...caller(Boundary.MESH, Code.ResourceExhausted), retryable: true },
  SEEK_OUT_OF_RANGE: caller(Boundary.MESH, Code.OutOfRange),

  NATS_UNAVAILABLE: infra(Boundary.MESH),
  NATS_REFUSED: { ...infra(Boundary.MESH, Code.PermissionDenied), retryable: false },
  NATS_STORE_FULL: { ...infra(Boundary.MESH, Code.ResourceExhausted) },
  STREAM_DIFFERS: caller(Boundary.MESH, Code.FailedPrecondition),
  BLOB_MISSING: { ...infra(Boundary.MESH, Code.DataLoss), retryable: false },
  RECORDS_MISSING: infra(Boundary.MESH, Code.DataLoss),
  RECORDS_INVALID: { ...infra(Boundary.MESH, Code.DataLoss), retryable: false },
  BATCH_TOO_LARGE: { ...infra(Boundary.MESH, Code.ResourceExhausted), retryable: false },
  NOT_LEADER: infra(Boundary.MESH),
  STATE_INVALID: { ...infra(Boundary.MESH, Code.DataLoss), retryable: false },
  STATE_FENCED: { ...infra(Boundary.MESH, Code.Aborted), retryable: false },
  NODE_LOST: infra(Boundary.MESH),
  MESH_UNREACHABLE: { ...caller(Boundary.MESH, Code.Unavailable), retryable: true },
  COLLECTOR_UNAVAILABLE: { ...caller(Boundary.MESH, Code.Unavailable), retryable: true },
  STAGE_TIMEOUT: infra(Boundary.MESH, Code.DeadlineExceeded),
  SHUTTING_DOWN: infra(Boundary.MESH),
  INTERNAL: infra(Boundary.MESH, Code.Internal),

  BACKEND_UNAVAILABLE: caller(Boundary.SANDBOX, Code.FailedPrecondition),
  IMAGE_NOT_FOUND: caller(Boundary.SANDBOX, Code.FailedPrecondition),
  PREPARE_FAILED: caller(Boundary.SANDBOX, Code.Aborted),
  PREPARE_TIMEOUT: infra(Boundary.SANDBOX, Code.DeadlineExceeded),
  SANDBOX_FAILED: infra(Boundary.SANDBOX),
  RUNTIME_LOST: infra(Boundary.SANDBOX, Code.NotFound),
  RUNTIME_BUSY: { ...caller(Boundary.SANDBOX, Code.FailedPrecondition), retryable: true },
  RUNTIME_LIMIT: { ...caller(Boundary.SANDBOX, Code.ResourceExhausted), retryable: true },
  UNSAFE_PATH: caller(Boundary.SANDBOX, Code.InvalidArgument),
  FILE_TOO_LARGE: caller(Boundary.SANDBOX, Code.ResourceExhausted),
  EGRESS_DENIED: caller(Boundary.SANDBOX, Code.PermissionDenied),
  EGRESS_LIMIT: caller(Boundary.SANDBOX, Code.ResourceExhausted),
  EGRESS_UNREACHABLE: { ...caller(Boundary.SANDBOX, Code.Unavailable), retryable: true },

  UNKNOWN_HARNESS: caller(Boundary.HARNESS, Code.InvalidArgument),
  HARNESS_INSTALL_FAILED: infra(Boundary.HARNESS),
  HARNESS_PLUGIN_INVALID: caller(Boundary.HARNESS, Code.FailedPrecondition),
  HARNESS_EXIT: caller(Boundary.HARNESS, Code.Aborted),
  HARNESS_TIMEOUT: caller(Boundary.HARNESS, Code.DeadlineExceeded),
  EXECUTOR_LOST: infra(Boundary.MESH),
  CALLER_LOST: infra(Boundary.HARNESS),

  PROXY_UNAVAILABLE: infra(Boundary.PROXY),
  PROXY_CLOSE_FAILED: infra(Boundary.PROXY),
  CAPABILITY_INVALID: caller(Boundary.PROXY, Code.Unauthenticated),
  SESSION_CLOSED: caller(Boundary.PROXY, Code.FailedPrecondition),
  BODY_TOO_LARGE: caller(Boundary.PROXY, Code.ResourceExhausted),
  DIALECT_INVALID: caller(Boundary.PROXY, Code.InvalidArgument),
  RECORD_NOT_WRITTEN: infra(Boundary.PROXY),
  CALLS_IN_FLIGHT_LIMIT: { ...caller(Boundary.PROXY, Code.ResourceExhausted), retryable: true },
  CALLS_PER_ATTEMPT_LIMIT: caller(Boundary.PROXY, Code.ResourceExhausted),
  POOL_SESSIONS_LIMIT: { ...caller(Boundary.PROXY, Code.ResourceExhausted), retryable: true },
  POLICY_PAUSED: infra(Boundary.PROXY),
  VERSION_EXISTS: caller(Boundary.PROXY, Code.AlreadyExists),
  PAUSE_IN_PROGRESS: caller(Boundary.PROXY, Code.FailedPrecondition),
  PAUSE_TIMEOUT: { ...caller(Boundary.PROXY, Code.DeadlineExceeded), retryable: true },

  ENGINE_UNAVAILABLE: infra(Boundary.PROVIDER),
  ENGINE_BUSY: infra(Boundary.PROVIDER, Code.ResourceExhausted),
  ENGINE_ERROR: infra(Boundary.PROVIDER),
  ENGINE_REFUSED: caller(Boundary.PROVIDER, Code.InvalidArgument),
  ENGINE_NO_TOKEN_IDS: infra(Boundary.PROVIDER, Code.FailedPrecondition),
  ENGINE_STREAM_CUT: infra(Boundary.PROVIDER),
  ENGINE_TIMEOUT: infra(Boundary.PROVIDER, Code.DeadlineExceeded),

  UNKNOWN_BUILDER: caller(Boundary.TASK, Code.InvalidArgument),
  BUILDER_PLUGIN_INVALID: caller(Boundary.TASK, Code.FailedPrecondition),
  BUILDER_PLUGIN_FAILED: caller(Boundary.TASK, Code.Aborted),
  UNKNOWN_EVALUATOR: caller(Boundary.EVALUATOR, Code.InvalidArgument),
  EVALUATION_FAILED: infra(Boundary.EVALUATOR),
  EVALUATION_TIMEOUT: infra(Boundary.EVALUATOR, Code.DeadlineExceeded),
  EVALUATOR_PLUGIN_INVALID: caller(Boundary.EVALUATOR, Code.FailedPrecondition),
  EVALUATOR_PLUGIN_FAILED: caller(Boundary.EVALUATOR, Code.Aborted),
  TRACE_REWARDS_INVALID: caller(Boundary.EVALUATOR, Code.FailedPrecondition),
  JUDGE_UNAVAILABLE: infra(Boundary.EVALUATOR),
  JUDGE_REFUSED: caller(Boundary.EVALUATOR, Code.FailedPrecondition),
  JUDGE_ANSWER_INVALID: caller(Boundary.EVALUATOR, Code.Aborted),
  NOTHING_TO_GRADE: caller(Boundary.EVALUATOR, Code.FailedPrecondition),
  EVALUATIONS_LIMIT: { ...caller(Boundary.EVALUATOR, Code.ResourceExhausted), retryable: true },
} as const satisfies Record<string, ReasonSpec>;

export type Reason = keyof typeof REASONS;

/** One fault of an input, by its path (`runtime.prepare[2].target`). */
export interface FieldFault {
  readonly field: string;
  readonly description: string;
}

export interface PolarErrorOptions {
  readonly cause?: unknown;
  /** All faults of an input, at once. */
  readonly fields?: readonly FieldFault[];
  /** When a retry makes sense. */
  readonly retryAfterMs?: number;
  /** Where to call instead. */
  readonly leaderUrl?: string | undefined;
}

/** The one error class. `message` says what happened and what to do; it holds no prompt, key or token. */
export class PolarError extends Error {
  override readonly name = 'PolarError';
  readonly reason: Reason;
  readonly fields: readonly FieldFault[];
  readonly retryAfterMs: number | undefined;
  readonly leaderUrl: string | undefined;

  constructor(reason: Reason, message: string, options: PolarErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.fields = options.fields ?? [];
    this.retryAfterMs = options.retryAfterMs;
    this.leaderUrl = options.leaderUrl;
  }

  get spec(): ReasonSpec {
    return REASONS[this.reason];
  }

  get retryable(): boolean {
    return this.spec.retryable;
  }
}

/** Any thrown value as a PolarError; what is not typed is INTERNAL. */
export function asPolarError(error: unknown): PolarError {
  if (error instanceof PolarError) return error;
  if (error instanceof ConnectError) return fromConnectError(error);
  return new PolarError('INTERNAL', error instanceof Error ? error.message : String(error), {
    cause: error,
  });
}

/** The failure that goes on a session; a message above FAILURE_MESSAGE_CHARS_MAX is cut. */
export function failureOf(error: unknown): Failure {
  const { reason, message: whole, spec } = asPolarError(error);
  const { boundary, infrastructure } = spec;
  const message = whole.slice(0, FAILURE_MESSAGE_CHARS_MAX);
  return create(FailureSchema, { boundary, reason, message, infrastructure });
}

/** A failure from a reason of the catalogue. */
export function failure(reason: Reason, message: string): Failure {
  return failureOf(new PolarError(reason, message));
}

/** The Connect form: ErrorInfo always, BadRequest where fields are named, RetryInfo where a retry makes sense (AIP-193). */
export function toConnectError(thrown: unknown): ConnectError {
  // Connect wraps what a handler throws before an interceptor sees it.
  const error = thrown instanceof ConnectError && thrown.cause instanceof PolarError ? thrown.cause : thrown;
  if (error instanceof ConnectError) return error;
  const { reason, message, fields, spec, retryAfterMs, leaderUrl } = asPolarError(error);
  const connectError = new ConnectError(shortened(message), spec.code, undefined, undefined, error);
  const boundary = Boundary[spec.boundary].toLowerCase();
  connectError.details.push({
    desc: ErrorInfoSchema,
    value: { reason, domain: 'polar', metadata: { boundary, ...(leaderUrl && { leader_url: leaderUrl }) } },
  });
  if (fields.length > 0) {
    connectError.details.push({ desc: BadRequestSchema, value: { fieldViolations: shortFields(fields) } });
  }
  if (spec.retryable) {
    const ms = retryAfterMs ?? 1000;
    const retryDelay = { seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 };
    connectError.details.push({ desc: RetryInfoSchema, value: { retryDelay } });
  }
  return connectError;
}

/** What a Connect client caught, as the error that the server threw. */
export function fromConnectError(error: unknown): PolarError {
  const connectError = ConnectError.from(error);
  const info = connectError.findDetails(ErrorInfoSchema)[0];
  const fields = connectError.findDetails(BadRequestSchema)[0]?.fieldViolations ?? [];
  const reason = info !== undefined && info.reason in REASONS ? (info.reason as Reason) : undefined;
  const tls = reason === undefined ? tlsFault(error) : undefined;
  if (tls !== undefined) return new PolarError('TLS_FAILED', tls, { cause: error });
  const lost = isBrokenHttp2(error) || isNoAnswer(connectError);
  const other = lost ? 'NODE_LOST' : reasonOfCode(connectError.code);
  return new PolarError(reason ?? other, connectError.rawMessage, {
    cause: error,
    fields: fields.map(({ field, description }) => ({ field, description })),
    leaderUrl: info?.metadata['leader_url'],
  });
}

/** A stream that is refused or cut while its server ends shows as an error of Node's own, which Connect does not know. */
function isBrokenHttp2(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string' && at.code.startsWith('ERR_HTTP2_')) return true;
  }
  return false;
}

/** An answer without its end, or of another form: Connect blames the request for it. What a server says has its headers. */
const isNoAnswer = ({ code, metadata }: ConnectError): boolean =>
  code === Code.InvalidArgument && !metadata.has('content-type');

function reasonOfCode(code: Code): Reason {
  // A connection that breaks in the middle of a call shows as Canceled or Aborted (HTTP/2, HTTP/1.1).
  if (code === Code.Unavailable || code === Code.Canceled || code === Code.Aborted) return 'NODE_LOST';
  if (code === Code.NotFound) return 'NOT_FOUND';
  if (code === Code.InvalidArgument) return 'INVALID_REQUEST';
  if (code === Code.DeadlineExceeded) return 'STAGE_TIMEOUT';
  return 'INTERNAL';
}
