// The attempt that a request is let in for.
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { Attempt } from '../attempts/attempt.ts';
import type { LlmProxyContext } from '../context.ts';

/** To be asked when the request is there as a whole. Throws CAPABILITY_INVALID, SESSION_CLOSED, NATS_UNAVAILABLE. */
export function attemptOf(ctx: LlmProxyContext, capability: Capability): Promise<Attempt> {
  const { ref } = capability;
  if (ref === undefined) throw new PolarError('CAPABILITY_INVALID', 'the capability names no attempt');
  // A body may come slowly: an attempt that was ended meanwhile is not opened again, as nothing would end it then.
  if (!ctx.capabilities.holds(capability)) {
    throw new PolarError('CAPABILITY_INVALID', 'the capability is no longer valid');
  }
  return ctx.attempts.open({ sessionId: ref.sessionId, attempt: ref.attempt });
}
