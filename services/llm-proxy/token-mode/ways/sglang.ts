// SGLang: `input_ids` in the place of the chat template; it streams, and parses calls and thinking, as in text mode.
import type { JsonObject } from '../../domain/json.ts';
import type { TokenRequest, TokenWay } from '../../engines/token-call.ts';
import { withIds } from './body.ts';

const CHAT = '/v1/chat/completions';

export const sglang: TokenWay = {
  async whole(request, signal) {
    const { engine, tokens } = request;
    const reply = await engine.ask(CHAT, bodyOf(request), signal);
    engine.adapter.readReply(reply, tokens);
    return reply;
  },

  async *chunks(request, signal) {
    const { engine, tokens } = request;
    for await (const chunk of engine.chunks(bodyOf(request), signal)) {
      engine.adapter.readChunk(chunk, tokens);
      yield chunk;
    }
  },
};

function bodyOf({ sent, prompt }: TokenRequest): readonly Buffer[] {
  // What was sent need not come back.
  const { return_prompt_token_ids: _, return_input_ids_in_sglext: __, ...rest } = sent;
  const body: JsonObject = { ...rest, messages: [{ role: 'user', content: '' }] };
  return withIds('input_ids', prompt, body);
}
