// A harness that asks for a longer reply than the model's window has room for, in each call.
import { expect } from 'chai';
import { type RawAnswer, RawEngine, sse } from '../../../test/support/raw-engine.ts';
import type { JsonObject } from '../domain/json.ts';
import { VllmWay } from '../token-mode/ways/vllm.ts';
import { Engine } from './engine.ts';
import { TextCall } from './engine-call.ts';
import { TokenCall } from './token-call.ts';

const WINDOW = 16_384;
const CHOICE = { index: 0, message: { content: 'done' }, finish_reason: 'stop' };
const CHUNK = { choices: [{ index: 0, delta: { content: 'done' }, finish_reason: 'stop' }] };

/** As vLLM 0.32 does. */
function refusal({ max_completion_tokens: newer, max_tokens: older }: JsonObject): RawAnswer | undefined {
  const [name, most] = newer === undefined ? ['max_tokens', older] : ['max_completion_tokens', newer];
  if (!(Number(most) > WINDOW)) return undefined;
  const message =
    `${name}=${most} cannot be greater than max_model_len=${WINDOW}. Please request fewer output tokens. ` +
    `(parameter=${name}, value=${most})`;
  return { status: 400, body: { error: { message, type: 'BadRequestError', param: name, code: 400 } } };
}

describe('a limit above the window', () => {
  let server: RawEngine;
  let engine: Engine;
  before(async () => {
    server = await RawEngine.start(({ path, body }) => {
      const refused = refusal(body);
      if (refused !== undefined) return refused;
      if (path.endsWith('/render')) return { body: { token_ids: [1], sampling_params: { max_tokens: 9 } } };
      if (path.endsWith('/generate')) return { body: { choices: [{ index: 0, token_ids: [7] }] } };
      if (body.stream) return { type: 'text/event-stream', body: sse(CHUNK, '[DONE]') };
      return { body: { choices: [CHOICE] } };
    });
    engine = new Engine(server.url, { kind: 'vllm', model: 'm', key: undefined, callsMax: 1 });
  });
  after(async () => {
    engine[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const never = new AbortController().signal;
  const callWith = (fields: JsonObject, stream = false): TextCall => {
    const chat = { messages: [{ role: 'user', content: 'x' }], tools: [], fields, n: 1, stream };
    return new TextCall(engine, 'm', { sessionId: 's', attempt: 1, pool: '', chat, sampling: undefined });
  };

  it('is the window where the engine refuses it, by either name and by both', async () => {
    for (const name of ['max_tokens', 'max_completion_tokens']) {
      const call = callWith({ [name]: 32_000 });
      expect(await call.whole(never)).to.have.nested.property('choices[0].message.content', 'done');
      expect(call.sent).to.include({ [name]: WINDOW });
    }
    const both = callWith({ max_tokens: 5, max_completion_tokens: 32_000 });
    await both.whole(never);
    expect(both.sent).to.include({ max_tokens: 5, max_completion_tokens: WINDOW });
  });

  it('is so in a stream', async () => {
    const chunks: JsonObject[] = [];
    const to = { take: (chunk: JsonObject) => void chunks.push(chunk), flush: () => undefined };
    const call = callWith({ max_tokens: 32_000 }, true);
    await call.stream(to, never);
    expect(chunks).to.have.length(1);
    expect(call.sent).to.include({ max_tokens: WINDOW });
  });

  it('is so in token mode, where the rendering refuses it', async () => {
    const prompt = { behind: 0, tail: Int32Array.of(2), expertRows: 0, length: 2, text: [], calls: 0 };
    const call = new TokenCall(callWith({ max_tokens: 32_000 }), new VllmWay(), async () => prompt);
    expect(await call.whole(never)).to.have.nested.property('choices[0].message.content', 'done');
    expect(call).to.include({ mode: 'token' });
    expect(call.sent).to.include({ max_tokens: WINDOW });
  });

  it('is what the prompt leaves of it where SGLang counts both', async () => {
    const before = server.answer;
    server.answer = ({ body: { max_tokens: most } }) => {
      const sums =
        `Requested token count exceeds the model's maximum context length of ${WINDOW} tokens. You requested a total of ` +
        `${13 + most} tokens: 13 tokens from the input messages and ${most} tokens for the completion. Please reduce`;
      const large = `max_completion_tokens is too large: ${most}.This model supports at most ${WINDOW} completion tokens.`;
      if (13 + most <= WINDOW) return { body: { choices: [CHOICE] } };
      return { status: 400, body: { object: 'error', message: most > WINDOW ? large : sums, code: 400 } };
    };
    const call = callWith({ max_tokens: 32_000 });
    await call.whole(never);
    expect(call.sent).to.include({ max_tokens: WINDOW - 13 });
    // It would fit by itself: the harness is told that prompt and reply together do not.
    const refused = await callWith({ max_tokens: WINDOW - 1 })
      .whole(never)
      .catch((error) => error);
    expect(refused).to.include({ reason: 'ENGINE_REFUSED' });
    server.answer = before;
  });

  it('is asked for once where the engine takes it', async () => {
    const before = server.requests.length;
    await callWith({ max_tokens: WINDOW }).whole(never);
    expect(server.requests.slice(before).map(({ body }) => body.max_tokens)).to.deep.equal([WINDOW]);
  });
});
