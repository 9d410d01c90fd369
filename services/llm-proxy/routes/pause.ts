// Pause: hold new calls at every proxy.
import type { Duration } from '@bufbuild/protobuf/wkt';
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { PauseMode } from '../../../gen/ts/polar/event/v1/policy_pb.js';
import type { PolicyService } from '../../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { PolarError } from '../../common/errors.ts';
import { newId } from '../../common/ids.ts';
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
      const { policy } = await ctx.policies.pause(
        { id: idOf(request.pauseId), mode, ttlMs },
        timeoutMs,
        signal,
      );
      return { policy };
    },
  };
}

/** Throws INVALID_REQUEST. */
function idOf(given: string): string {
  if (given === '') return newId('pause');
  if (/^[A-Za-z0-9._-]{1,64}$/.test(given)) return given;
  const fields = [{ field: 'pause_id', description: 'must be 1 to 64 of [A-Za-z0-9._-]' }];
  throw new PolarError('INVALID_REQUEST', 'pause_id must be 1 to 64 of [A-Za-z0-9._-]', { fields });
}

/** Throws INVALID_REQUEST. */
function within(field: string, given: Duration | undefined, defaultMs: number, maxMs: number): number {
  if (given === undefined) return defaultMs;
  const ms = durationMs(given);
  if (ms > 0 && ms <= maxMs) return ms;
  const description = `must be above 0 and at most ${maxMs / 1_000} s`;
  throw new PolarError('INVALID_REQUEST', `${field} ${description}`, { fields: [{ field, description }] });
}
