// How many tokens a prompt has: asked of the engine, not sampled from, not recorded.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { PolarError } from '../../common/errors.ts';
import type { LlmProxyContext } from '../context.ts';
import { dialectOf, readRequest } from '../dialects/dialects.ts';
import type { CountTarget } from '../domain/paths.ts';
import { sendJson } from '../http/answer.ts';
import { parseBody, readBody } from '../http/body.ts';
import { attemptOf } from './attempt-of.ts';
import { tokenized } from './tokenized.ts';

/** Throws what the answer is to say where there is none. */
export async function count(
  ctx: LlmProxyContext,
  capability: Capability,
  target: CountTarget,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const dialect = dialectOf(target.dialect);
  if (dialect.countBody === undefined) throw new PolarError('NOT_FOUND', `${dialect.name} counts no tokens`);
  const body = parseBody(await readBody(request));
  const refers = dialect.refersTo?.(body);
  const found = refers && (await ctx.attempts.stored.find(await attemptOf(ctx, capability), refers));
  const { asked } = readRequest(dialect, body, { ...target, kind: 'generate' }, ctx.config.allowed, {
    found,
  });
  const { ids } = await tokenized(ctx, capability, asked);
  sendJson(response, 200, dialect.countBody(ids.length));
}
