// The end of a run that was elsewhere, at the LLM proxy of its node: no further calls, and the count of them.
import { create } from '@bufbuild/protobuf';
import type { Failure } from '../../../gen/ts/polar/common/v1/failure_pb.js';
import { Outcome } from '../../../gen/ts/polar/common/v1/session_pb.js';
import type { CloseWork } from '../../../gen/ts/polar/event/v1/external_session_pb.js';
import {
  type AttemptRef,
  type CallRange,
  CallRangeSchema,
  RanSchema,
} from '../../../gen/ts/polar/event/v1/work_pb.js';
import { failure as failureFor, type PolarError } from '../../common/errors.ts';
import { createRecords, readCompletion } from '../../common/nats/records.ts';
import type { HarnessExecutorContext } from '../context.ts';
import * as events from '../events.ts';
import { closeSession } from './close-session.ts';
import type { RunEnd } from './run-harness.ts';

/** What nobody has seen: who calls is no sandbox of the node. */
const AWAY = 'the LLM proxy began anew while it ran, and no call has gone well since';
/** Calls that are rewarded and not there, by name. */
const UNKNOWN_NAMED_MAX = 20;

/**
 * A last model call that failed for infrastructure is not its caller's: then the attempt is lost, as that of any harness. So it
 * is where it failed and the proxy may have been away.
 * Throws PROXY_CLOSE_FAILED, RECORDS_MISSING. Safe to repeat.
 */
export async function endElsewhere(
  ctx: HarnessExecutorContext,
  ref: AttemptRef,
  { outcome, failure, rewardedCalls }: CloseWork,
  signal: AbortSignal,
): Promise<RunEnd> {
  const onRetry = (error: PolarError): void => events.closeRetried(ctx.log, ref, error);
  const { lastFailure, beganAnew, calls, firstSeq, lastSeq } = await closeSession(
    ctx.proxy,
    ref,
    onRetry,
    signal,
  );
  if (lastFailure?.infrastructure === true) return { failed: lastFailure };
  if (outcome === Outcome.HARNESS_ERROR && beganAnew)
    return { failed: failureFor('PROXY_UNAVAILABLE', AWAY) };
  const range = create(CallRangeSchema, { calls, firstSeq, lastSeq });
  const rewardsFailure = await unknownCalls(ctx, ref, range, rewardedCalls, signal);
  return {
    ran: create(RanSchema, {
      ...{ outcome, calls: range },
      ...(failure && { failure }),
      ...(rewardsFailure && { rewardsFailure }),
    }),
  };
}

/** Why rewards of these calls cannot be used; undefined where all of them are of the attempt. */
async function unknownCalls(
  { bus, blobs }: HarnessExecutorContext,
  { sessionId, attempt }: AttemptRef,
  range: CallRange,
  rewarded: readonly string[],
  signal: AbortSignal,
): Promise<Failure | undefined> {
  if (rewarded.length === 0) return undefined;
  const callIdOf = (bytes: Uint8Array): string => readCompletion(bytes).callId;
  const found = new Set(await createRecords(bus, blobs).inRange(sessionId, attempt, range, signal, callIdOf));
  const unknown = rewarded.filter((callId) => !found.has(callId)).slice(0, UNKNOWN_NAMED_MAX);
  if (unknown.length === 0) return undefined;
  const faults = unknown.map((callId) => `trace_rewards.${callId}: the session has no such call`);
  return failureFor('TRACE_REWARDS_INVALID', faults.join('; '));
}
