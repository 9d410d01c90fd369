// The ids of a text or a conversation, in the form of vLLM's POST /tokenize.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LlmProxyContext } from '../context.ts';
import { dialectOf, readRequest } from '../dialects/dialects.ts';
import { invalid } from '../dialects/faults.ts';
import type { JsonObject } from '../domain/json.ts';
import { normalised, type RuleName } from '../domain/normalise.ts';
import { type TokenizeOrder, tokenize } from '../engines/tokenize.ts';
import { sendJson } from '../http/answer.ts';
import { parseBody, readBody } from '../http/body.ts';

/** Throws what the answer is to say where there is none. */
export async function tokenizeText(
  { engines, config, stopping }: LlmProxyContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const order = orderOf(parseBody(await readBody(request)), config.node.normalise);
  const { ids, windowTokens } = await tokenize(engines.policy, order, stopping);
  sendJson(response, 200, {
    count: ids.length,
    max_model_len: windowTokens ?? null,
    tokens: [...ids],
    token_strs: null,
  });
}

function orderOf(body: JsonObject, rules: readonly RuleName[]): TokenizeOrder {
  const { prompt, messages, add_special_tokens: addSpecial } = body;
  if (messages !== undefined) {
    const target = { kind: 'generate', dialect: 'openai-chat' } as const;
    const asked = readRequest(dialectOf('openai-chat'), body, target);
    return { ...asked, messages: normalised(asked.messages, rules).messages };
  }
  if (typeof prompt !== 'string') {
    throw invalid([{ field: 'prompt', description: 'must be a string where there are no messages' }]);
  }
  return { text: prompt, addSpecial: addSpecial !== false };
}
