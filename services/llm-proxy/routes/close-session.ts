// CloseSession: no further calls for an attempt, and the count of its records.
import type { ServiceImpl } from '@connectrpc/connect';
import type {
  CloseSessionRequest,
  ProxyService,
} from '../../../gen/ts/polar/llm_proxy/v1/llm_proxy_service_pb.js';
import { Deadline } from '../../common/clock.ts';
import { type FieldFault, PolarError } from '../../common/errors.ts';
import { TASK_ID_PATTERN } from '../../common/ids.ts';
import { RPC_TIMEOUT_MS } from '../../common/limits.ts';
import type { LlmProxyContext } from '../context.ts';
import { endSession } from '../engines/session-end.ts';
import { sessionClosed } from '../events.ts';

export function closeSession(ctx: LlmProxyContext): Pick<ServiceImpl<typeof ProxyService>, 'closeSession'> {
  return {
    async closeSession(request, { signal }) {
      check(request);
      const key = { sessionId: request.sessionId, attempt: request.attempt };
      try {
        using deadline = new Deadline(RPC_TIMEOUT_MS, signal);
        const closed = await ctx.attempts.close(key, deadline.signal);
        sessionClosed(ctx.log, key, closed);
        endSession(ctx.engines, ctx.log, key);
        const { calls, firstSeq, lastSeq, lastFailure, hasServed } = closed;
        return {
          calls,
          firstSeq: BigInt(firstSeq),
          lastSeq: BigInt(lastSeq),
          ...(lastFailure && { lastFailure }),
          beganAnew: !hasServed && ctx.capabilities.isOlder(key),
        };
      } catch (error) {
        const message = `the records of ${request.sessionId} could not be written or read in time; call again`;
        throw new PolarError('PROXY_CLOSE_FAILED', message, { cause: error });
      }
    },
  };
}

function check({ sessionId, attempt }: CloseSessionRequest): void {
  const fields: FieldFault[] = [];
  if (!TASK_ID_PATTERN.test(sessionId))
    fields.push({ field: 'session_id', description: 'must be a session id' });
  if (attempt < 1) fields.push({ field: 'attempt', description: 'must be at least 1' });
  if (fields.length > 0) {
    const message = fields.map(({ field, description }) => `${field} ${description}`).join('; ');
    throw new PolarError('INVALID_REQUEST', message, { fields });
  }
}
