// The ids of a text or a conversation, in the form of vLLM's POST /tokenize.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Capability } from '../../../gen/ts/polar/event/v1/work_pb.js';
import type { LlmProxyContext } from '../context.ts';
import { dialectOf, readRequest } from '../dialects/dialects.ts';
import { invalid } from '../dialects/faults.ts';
import { type JsonObject, textOf } from '../domain/json.ts';
import { type Tokenized, tokenize } from '../engines/tokenize.ts';
import { sendJson } from '../http/answer.ts';
import { parseBody, readBody } from '../http/body.ts';
import { poolOf } from './generate.ts';
import { tokenized } from './tokenized.ts';

/** Throws what the answer is to say where there is none. */
export async function answerTokenize(
  ctx: LlmProxyContext,
  capability: Capability,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = parseBody(await readBody(request));
  const { ids, windowTokens } =
    body['messages'] === undefined
      ? await ofText(ctx, capability, body)
      : await ofConversation(ctx, capability, body);
  const max_model_len = windowTokens ?? null;
  sendJson(response, 200, { count: ids.length, max_model_len, tokens: [...ids], token_strs: null });
}

async function ofConversation(
  ctx: LlmProxyContext,
  capability: Capability,
  body: JsonObject,
): Promise<Tokenized> {
  const target = { kind: 'generate', dialect: 'openai-chat' } as const;
  const { asked } = readRequest(dialectOf('openai-chat'), body, target, ctx.config.allowed);
  return await tokenized(ctx, capability, asked);
}

async function ofText(ctx: LlmProxyContext, capability: Capability, body: JsonObject): Promise<Tokenized> {
  const { prompt, model, add_special_tokens: addSpecial } = body;
  if (typeof prompt !== 'string') {
    throw invalid([{ field: 'prompt', description: 'must be a string where there are no messages' }]);
  }
  const pool = ctx.engines.pool(poolOf(ctx, capability, { model: textOf(model) }));
  return await tokenize(pool, { text: prompt, addSpecial: addSpecial !== false }, ctx.stopping);
}
