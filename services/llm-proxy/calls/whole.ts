// A call without a stream: the reply goes out when its record is durable.
import type { ServerResponse } from 'node:http';
import { PolarError } from '../../common/errors.ts';
import { visibleReply } from '../dialects/openai-chat-reply.ts';
import { arrayOf, isObject, objectOf, textOf } from '../domain/json.ts';
import { finishReasonOf } from '../domain/reply.ts';
import { noTokens } from '../domain/tokens.ts';
import { sendJson } from '../http/answer.ts';
import type { Exchange } from './exchange.ts';

export async function wholeReply(exchange: Exchange, response: ServerResponse): Promise<void> {
  const { ctx, call, asked, sent, shown } = exchange.parts;
  const reply = await ctx.engine.whole(sent, call.signal);
  const [choice] = arrayOf(reply['choices']);
  if (!isObject(choice))
    throw new PolarError('ENGINE_ERROR', `the engine at ${ctx.engine.name} made no choice`);
  const tokens = noTokens();
  ctx.engine.adapter.readReply(reply, tokens);
  if (tokens.promptIds === undefined) throw exchange.noTokenIds('prompt');
  if (tokens.sampledIds === undefined) throw exchange.noTokenIds('sampled');
  const finishReason = finishReasonOf(textOf(choice['finish_reason']) ?? 'stop');
  const interrupted = finishReason === 'abort' ? exchange.interrupted() : undefined;
  const seen = visibleReply(reply, asked, shown);
  await exchange.record({
    tokens,
    finishReason,
    reply: interrupted === undefined ? objectOf(choice['message']) : undefined,
    usage: objectOf(reply['usage']),
    error: interrupted,
  });
  if (interrupted !== undefined) throw interrupted;
  call.signal.throwIfAborted();
  sendJson(response, 200, seen);
}
