// One model call of a harness, from its request to its reply.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import type { Attempt } from '../attempts/attempt.ts';
import type { LlmProxyContext } from '../context.ts';
import type { Asked } from '../dialects/dialect.ts';
import { dialectOf } from '../dialects/dialects.ts';
import { normalised } from '../domain/normalise.ts';
import type { GenerateTarget } from '../domain/paths.ts';
import { roleOf } from '../domain/roles.ts';
import { callFailed, callJoined } from '../events.ts';
import { parseBody, readBody } from '../http/body.ts';
import { Delivery } from './delivery.ts';
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
  const bytes = await readBody(request);
  const attempt = await ctx.attempts.open({ sessionId: ref.sessionId, attempt: ref.attempt });
  const shared = ctx.config.node.coalesce ? ctx.coalescer.find(attempt, target, bytes) : undefined;
  if (shared !== undefined) {
    callJoined(ctx.log, attempt.key);
    shared.join(response);
    return await shared.answered(response);
  }
  await begin(ctx, { capability, target, bytes, attempt }, request, response);
}

interface Begin {
  readonly capability: Capability;
  readonly target: GenerateTarget;
  readonly bytes: Buffer;
  readonly attempt: Attempt;
}

async function begin(
  ctx: LlmProxyContext,
  { capability, target, bytes, attempt }: Begin,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const dialect = dialectOf(target.dialect);
  const read = dialect.read(parseBody(bytes), target);
  const { messages, by: normalisedBy } = normalised(read.messages, ctx.config.node.normalise);
  const asked: Asked = { ...read, messages };
  const shown = asked.model ?? (capability.modelName || (await ctx.engines.model(ctx.stopping)));
  const call = attempt.begin();
  const writer = asked.writer(shown);
  const left = (): void => call.abort(new PolarError('CANCELLED', 'the harness left'));
  const delivery = new Delivery(dialect, asked.stream ? writer.stream() : undefined, left);
  delivery.join(response);
  using _ = ctx.coalescer.add(attempt, target, bytes, delivery);
  try {
    const order = { sessionId: attempt.key.sessionId, chat: asked, sampling: capability.sampling };
    const role = roleOf(request.headers, messages);
    using exchange = new Exchange({ ctx, attempt, call, asked, order, writer, delivery, role, normalisedBy });
    setImmediate(() => exchange.prepare());
    await (asked.stream ? streamedReply(exchange) : wholeReply(exchange));
    call.end();
  } catch (error) {
    callFailed(ctx.log, attempt.key, call.id, error);
    call.end(error);
    delivery.fail(asPolarError(error));
  }
}
