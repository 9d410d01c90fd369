// Pause: hold new calls at every proxy.
import type { Duration } from '@bufbuild/protobuf/wkt';
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { PauseMode } from '../../../gen/ts/polar/event/v1/policy_pb.js';
import type { PolicyService } from '../../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import {
  PAUSE_TIMEOUT_MAX_MS,
  PAUSE_TIMEOUT_MS,
  PAUSE_TTL_MAX_MS,
  PAUSE_TTL_MS,
} from '../../common/limits.ts';
import type { LlmProxyContext } from '../context.ts';

export function pause(ctx: LlmProxyContext): Pick<ServiceImpl<typeof PolicyService>, 'pause'> {
  return {
    async pause(request, { signal }) {
      const mode = request.mode === PauseMode.UNSPECIFIED ? PauseMode.DRAIN : request.mode;
      const timeoutMs = within('timeout', request.timeout, PAUSE_TIMEOUT_MS, PAUSE_TIMEOUT_MAX_MS);
      const ttlMs = within('ttl', request.ttl, PAUSE_TTL_MS, PAUSE_TTL_MAX_MS);
      const { policy } = await ctx.policies.pause(mode, timeoutMs, ttlMs, signal);
      return { policy };
    },
  };
}

/** Throws INVALID_REQUEST. */
function within(field: string, given: Duration | undefined, defaultMs: number, maxMs: number): number {
  if (given === undefined) return defaultMs;
  const ms = durationMs(given);
  if (ms > 0 && ms <= maxMs) return ms;
  const description = `must be above 0 and at most ${maxMs / 1_000} s`;
  throw new PolarError('INVALID_REQUEST', `${field} ${description}`, { fields: [{ field, description }] });
}
