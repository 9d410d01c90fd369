// One model call of a harness, from its request to its reply.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import type { LlmProxyContext } from '../context.ts';
import { dialectOf } from '../dialects/dialects.ts';
import type { GenerateTarget } from '../domain/paths.ts';
import { callFailed } from '../events.ts';
import { sendError } from '../http/answer.ts';
import { readJson } from '../http/body.ts';
import { Exchange } from './exchange.ts';
import { streamedReply } from './streamed.ts';
import { wholeReply } from './whole.ts';

/** Answers. Throws what the answer is to say where no call has begun yet. */
export async function generate(
  ctx: LlmProxyContext,
  capability: Capability,
  target: GenerateTarget,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { ref } = capability;
  if (ref === undefined) throw new PolarError('CAPABILITY_INVALID', 'the capability names no attempt');
  const dialect = dialectOf(target.dialect);
  const asked = dialect.read(await readJson(request), target);
  const attempt = await ctx.attempts.open({ sessionId: ref.sessionId, attempt: ref.attempt });
  const call = attempt.begin();
  const left = (): void => {
    if (!response.writableFinished) call.abort(new PolarError('CANCELLED', 'the harness left'));
  };
  response.once('close', left);
  if (response.destroyed) left();
  try {
    const order = { sessionId: ref.sessionId, chat: asked, sampling: capability.sampling };
    const shown = asked.model ?? (capability.modelName || (await ctx.engines.model(call.signal)));
    const exchange = new Exchange({ ctx, attempt, call, asked, order, writer: asked.writer(shown) });
    setImmediate(() => exchange.prepare());
    await (asked.stream ? streamedReply(exchange, response) : wholeReply(exchange, response));
    call.end();
  } catch (error) {
    callFailed(ctx.log, attempt.key, call.id, error);
    call.end(error);
    sendError(response, asPolarError(error), dialect);
  } finally {
    response.off('close', left);
  }
}
