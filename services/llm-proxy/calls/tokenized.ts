// The ids of a conversation as its engine would be given it, without a call.
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { LlmProxyContext } from '../context.ts';
import type { Asked } from '../dialects/dialect.ts';
import { type Tokenized, tokenize } from '../engines/tokenize.ts';
import { attemptOf } from './attempt-of.ts';
import { offeredBy, poolOf } from './generate.ts';
import { normalisedFor, untilKnown } from './normalised-for.ts';

/** Throws CAPABILITY_INVALID, SESSION_CLOSED, NOT_FOUND, and what a call of an engine throws. */
export async function tokenized(
  ctx: LlmProxyContext,
  capability: Capability,
  asked: Asked,
): Promise<Tokenized> {
  const attempt = await attemptOf(ctx, capability);
  const pool = poolOf(ctx, capability, asked);
  const engines = ctx.engines.pool(pool);
  await untilKnown(ctx, engines, asked.messages);
  const { messages } = normalisedFor(ctx, attempt, engines, asked.messages);
  const offered = offeredBy(ctx, pool, { ...asked, messages });
  return await tokenize(engines, offered, ctx.stopping);
}
