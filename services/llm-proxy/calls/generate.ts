// One model call of a harness, from its request to its reply.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { asPolarError, PolarError } from '../../common/errors.ts';
import { POOL_PREFIX } from '../../common/specs/model-pools.ts';
import type { Attempt } from '../attempts/attempt.ts';
import type { LlmProxyContext } from '../context.ts';
import type { Asked } from '../dialects/dialect.ts';
import { dialectOf, readRequest } from '../dialects/dialects.ts';
import type { Bytes } from '../domain/bytes.ts';
import { chosenAlone } from '../domain/chosen-tool.ts';
import { type ChatOrder, forTemplate } from '../domain/engine-body.ts';
import { ENGINE_FEATURES } from '../domain/engine-features.ts';
import { CONVERSATION_IN } from '../domain/known-body.ts';
import type { GenerateTarget } from '../domain/paths.ts';
import { roleOf } from '../domain/roles.ts';
import type { CallOrder } from '../engines/engine-call.ts';
import { callFailed, callJoined } from '../events.ts';
import { giveBack, parseConversation, readBody } from '../http/body.ts';
import { attemptOf } from './attempt-of.ts';
import { Delivery } from './delivery.ts';
import { Exchange } from './exchange.ts';
import { normalisedFor, untilKnown } from './normalised-for.ts';
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
  const came = await readBody(request, capability.ref && ctx.attempts.bodiesOf(capability.ref));
  const share = ctx.loopShares.take();
  if (share !== undefined) await share;
  const attempt = await attemptOf(ctx, capability);
  const shared = ctx.config.node.coalesce ? ctx.coalescer.find(attempt, target, came) : undefined;
  if (shared !== undefined) {
    giveBack(came);
    callJoined(ctx.log, attempt.key);
    shared.join(response);
    return await shared.answered(response);
  }
  await begin(ctx, { capability, target, came, attempt }, request, response);
}

interface Begin {
  readonly capability: Capability;
  readonly target: GenerateTarget;
  readonly came: Bytes;
  readonly attempt: Attempt;
}

async function begin(
  ctx: LlmProxyContext,
  { capability, target, came, attempt }: Begin,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const dialect = dialectOf(target.dialect);
  const member = CONVERSATION_IN[target.dialect];
  const { value, read } = parseConversation(ctx.attempts.bodies, attempt, came, member);
  const refers = dialect.refersTo?.(value);
  const found = refers && (await ctx.attempts.stored.find(attempt, refers));
  const { bytes, source, notes } = read.body;
  const { allowed } = ctx.config;
  const { asked: wanted, values } = readRequest(dialect, value, target, allowed, { found, notes });
  const pool = poolOf(ctx, capability, wanted);
  const engines = ctx.engines.pool(pool);
  const unknown = untilKnown(ctx, engines, wanted.messages, notes);
  if (unknown !== undefined) await unknown;
  const { messages, by: normalisedBy } = normalisedFor(ctx, attempt, engines, wanted.messages, notes);
  const asked = offeredBy(ctx, pool, { ...wanted, messages });
  const shown = asked.model ?? (capability.modelName || (await ctx.engines.model(ctx.stopping)));
  const call = attempt.begin();
  ctx.attempts.bodies.keep(attempt, read, values);
  const writer = asked.writer(shown, call.id);
  const left = (): void => call.abort(new PolarError('CANCELLED', 'the harness left'));
  const delivery = new Delivery(dialect, asked.stream ? () => writer.stream() : undefined, left, call.id);
  delivery.join(response);
  using _ = ctx.coalescer.add(attempt, target, bytes, delivery);
  try {
    const chat = { ...asked, templated: notes.each(asked.messages, forTemplate) };
    const order = { ...orderOf(chat, attempt, capability, pool), source };
    const role = roleOf(request.headers, messages, wanted.tools);
    const parts = { ctx, attempt, call, asked, notes, order, writer, delivery, role, normalisedBy };
    using exchange = new Exchange(parts);
    setImmediate(() => exchange.prepare());
    await (asked.stream ? streamedReply(exchange) : wholeReply(exchange));
    call.end();
  } catch (error) {
    callFailed(ctx.log, attempt.key, call.id, error);
    call.end(error);
    delivery.fail(asPolarError(error));
  }
}

/** The frozen model pool that is asked for; any other name is the policy's. Throws NOT_FOUND where the task allows none. */
export function poolOf(
  ctx: LlmProxyContext,
  { modelPools }: Capability,
  { model }: Pick<Asked, 'model'>,
): string {
  if (model === undefined || !model.startsWith(POOL_PREFIX)) return '';
  if (modelPools.includes(model) && ctx.engines.has(model)) return model;
  throw new PolarError('NOT_FOUND', `no model ${model} for this session; see the list of models`);
}

/** What is asked as the engines of the pool can be asked it. */
export function offeredBy(ctx: LlmProxyContext, pool: string, asked: Asked): Asked {
  const { kind } = ctx.engines.pool(pool).spec;
  return ENGINE_FEATURES[kind].toolByName ? asked : chosenAlone(asked);
}

/** A frozen model's sampling is the harness's own matter. */
function orderOf(chat: ChatOrder, { key }: Attempt, { sampling }: Capability, pool: string): CallOrder {
  const { sessionId, attempt } = key;
  return { sessionId, attempt, pool, chat, sampling: pool === '' ? sampling : undefined };
}
