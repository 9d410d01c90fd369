// SGLang: `input_ids` in the place of the chat template; it streams, and parses calls and thinking, as in text mode.
import type { JsonObject } from '../../domain/json.ts';
import { askExperts } from '../../engines/ask-experts.ts';
import { readFirst } from '../../engines/engine-call.ts';
import type { TokenPrompt, TokenRequest, TokenWay } from '../../engines/token-call.ts';
import { withIds } from './body.ts';

export const sglang: TokenWay = {
  async whole(request, signal) {
    const { engine, tokens, showsLogprobs } = request;
    const reply = await engine.whole(bodyOf(request), signal, showsLogprobs);
    engine.adapter.readReply(reply, tokens);
    return reply;
  },

  async stream(request, to, signal) {
    const { engine, tokens } = request;
    await engine.stream(bodyOf(request), readFirst(engine, tokens, to), signal);
  },
};

function bodyOf({ engine, sent, tokens, prompt }: TokenRequest): readonly Buffer[] {
  // What was sent need not come back, as it does with any of the first three; meta_info has the sampled ids, too.
  const { return_prompt_token_ids: _, return_token_ids: __, return_input_ids_in_sglext: ___, ...rest } = sent;
  const asked = askExperts(engine, sent, tokens, prompt);
  const said = engine.adapter.inItsWords?.(rest) ?? rest;
  const body: JsonObject = { ...said, ...asked, messages: messagesOf(prompt) };
  return withIds('input_ids', prompt, body);
}

/** Without an id, so that nobody misses its answer. */
const CALL: JsonObject = { type: 'function', function: { name: 'f', arguments: '{}' } };

/** Nothing is rendered of them, but the calls of Kimi models are numbered behind those of the messages. */
function messagesOf({ calls }: TokenPrompt): JsonObject[] {
  const asked: JsonObject = { role: 'user', content: '' };
  return calls === 0
    ? [asked]
    : [{ role: 'assistant', content: '', tool_calls: Array<JsonObject>(calls).fill(CALL) }, asked];
}
