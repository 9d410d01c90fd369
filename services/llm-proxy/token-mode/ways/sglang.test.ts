// What SGLang 0.5.23 is told beside ids.
import { expect } from 'chai';
import { RawEngine } from '../../../../test/support/raw-engine.ts';
import { arrayOf, type JsonObject, objectOf } from '../../domain/json.ts';
import { noTokens } from '../../domain/tokens.ts';
import { Engine } from '../../engines/engine.ts';
import { TextCall } from '../../engines/engine-call.ts';
import { sglang } from './sglang.ts';

const user = (content: string): JsonObject => ({ role: 'user', content });
const turn = (...names: string[]): JsonObject => ({
  role: 'assistant',
  content: 'x',
  tool_calls: names.map((name) => ({
    id: name,
    type: 'function',
    function: { name, arguments: '{"a": 1}' },
  })),
});

describe('a call of SGLang with ids', () => {
  let server: RawEngine;
  let engine: Engine;

  before(async () => {
    server = await RawEngine.start(({ body }) => {
      // As its _get_history_tool_calls_cnt and _process_tool_call_id number the calls of Kimi K2.
      const earlier = arrayOf(objectOf(body)['messages']).flatMap((message) => {
        const { role, tool_calls: calls } = objectOf(message);
        return role === 'assistant' ? arrayOf(calls) : [];
      });
      const call = { id: `functions.f:${earlier.length}`, function: { name: 'f', arguments: '{}' } };
      return { body: { choices: [{ message: { content: null, tool_calls: [call] } }] } };
    });
    engine = new Engine(server.url, { kind: 'sglang', model: 'm', key: undefined, callsMax: 1 });
  });

  after(async () => {
    engine[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  async function idFor(messages: JsonObject[], more: JsonObject = {}): Promise<unknown> {
    const text = [Buffer.from('1,2')];
    const calls = messages.flatMap(({ tool_calls: made }) => arrayOf(made)).length;
    const prompt = { behind: 0, tail: Int32Array.of(2), expertRows: 0, length: 2, text, calls };
    const request = {
      engine,
      model: 'm',
      sent: { messages, ...more },
      showsLogprobs: false,
      tokens: noTokens(),
      prompt,
    };
    const reply = await sglang.whole(request, AbortSignal.timeout(10_000));
    const [call] = arrayOf(objectOf(objectOf(arrayOf(reply['choices'])[0])['message'])['tool_calls']);
    return objectOf(call)['id'];
  }

  it('goes on with the numbers of the calls in its history', async () => {
    expect(await idFor([user('a')])).to.equal('functions.f:0');
    const result = { role: 'tool', tool_call_id: 'f', content: 'y' };
    expect(await idFor([user('a'), turn('f', 'g'), result, turn('h'), result])).to.equal('functions.f:3');
  });

  it('has no top_k where that is turned off, as in text mode: of all numbers below 1 it takes -1 alone', async () => {
    for (const [asked, told] of [
      [0, -1],
      [-1, -1],
      [5, 5],
    ] as const) {
      await idFor([user('a')], { top_k: asked });
      expect(server.requests.at(-1)?.body['top_k']).to.equal(told);
      const chat = { messages: [user('a')], tools: [], fields: { top_k: asked }, stream: false, n: 1 };
      const call = new TextCall(engine, 'm', {
        sessionId: 's',
        attempt: 1,
        pool: '',
        chat,
        sampling: undefined,
      });
      await call.whole(AbortSignal.timeout(10_000));
      expect(server.requests.at(-1)?.body['top_k']).to.equal(told);
    }
  });

  it('says nothing of what was said', async () => {
    await idFor([user('a secret'), turn('f'), user('b')]);
    const { messages, input_ids } = server.requests.at(-1)!.body;
    expect(input_ids).to.deep.equal([1, 2]);
    expect(messages.at(-1)).to.deep.equal(user(''));
    expect(JSON.stringify(messages)).to.not.match(/secret|"x"/);
    // Those with an id must have an answer at some models.
    expect(messages[0].tool_calls[0]).to.not.have.property('id');
  });
});
