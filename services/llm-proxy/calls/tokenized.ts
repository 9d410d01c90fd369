// The ids of a conversation as its engine would be given it, without a call.
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { LlmProxyContext } from '../context.ts';
import type { Asked } from '../dialects/dialect.ts';
import { normalised } from '../domain/normalise.ts';
import { type Tokenized, tokenize } from '../engines/tokenize.ts';
import { attemptOf } from './attempt-of.ts';
import { offeredBy, poolOf } from './generate.ts';

/** Throws CAPABILITY_INVALID, SESSION_CLOSED, NOT_FOUND, and what a call of an engine throws. */
export async function tokenized(
  ctx: LlmProxyContext,
  capability: Capability,
  asked: Asked,
): Promise<Tokenized> {
  const attempt = await attemptOf(ctx, capability);
  const { messages } = normalised(asked.messages, ctx.config.node.normalise, attempt.rules);
  const pool = poolOf(ctx, capability, asked);
  const offered = offeredBy(ctx, pool, { ...asked, messages });
  return await tokenize(ctx.engines.pool(pool), offered, ctx.stopping);
}
