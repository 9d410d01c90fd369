// Parts that several RPCs read and write alike.
import { create } from '@bufbuild/protobuf';
import { type Duration, durationMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Runtime as RuntimeMessage,
  RuntimeSchema,
} from '../../../gen/ts/polar/runtime_prewarm/v1/runtime_prewarm_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import { LEASE_MAX_MS, LEASE_MIN_MS } from '../../common/limits.ts';
import type { AcquireOptions } from './lease.ts';
import type { SandboxPlan } from './plan.ts';

/** A sandbox as far as callers see it. */
export interface LeasedRuntime {
  readonly id: string;
  readonly plan: SandboxPlan;
  readonly options: AcquireOptions;
  readonly leaseLeftMs: number;
  readonly proxyUrl: string;
}

/** `nowMs`: Unix time in milliseconds. */
export function runtimeMessage(runtime: LeasedRuntime, nowMs: number): RuntimeMessage {
  const { id, plan, options, leaseLeftMs, proxyUrl } = runtime;
  const { sessionId, attempt, purpose } = options.owner;
  return create(RuntimeSchema, {
    runtimeId: id,
    owner: { sessionId, attempt, purpose },
    backend: plan.backend,
    workdir: plan.workdir,
    env: { ...plan.env },
    expireTime: timestampFromMs(Math.round(nowMs + leaseLeftMs)),
    proxyUrl,
  });
}

/** Throws INVALID_REQUEST outside 1 s to 24 h. */
export function leaseOf(field: string, length: Duration | undefined): number {
  return durationBetween(field, length, undefined, LEASE_MIN_MS, LEASE_MAX_MS);
}

/** Milliseconds of a duration. Throws INVALID_REQUEST where it is missing without a default, or out of range. */
export function durationBetween(
  field: string,
  duration: Duration | undefined,
  defaultMs: number | undefined,
  minMs: number,
  maxMs: number,
): number {
  const ms = duration === undefined ? defaultMs : durationMs(duration);
  if (ms !== undefined && ms >= minMs && ms <= maxMs) return ms;
  throw invalid(field, `must be ${minMs} to ${maxMs} ms`);
}

export const invalid = (field: string, description: string): PolarError =>
  new PolarError('INVALID_REQUEST', `${field} ${description}`, { fields: [{ field, description }] });
