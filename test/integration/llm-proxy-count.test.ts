// How many tokens a prompt has, asked in each dialect that has a question for it, and their ids.
import { expect } from 'chai';
import { TestProxy } from '../support/llm-proxy.ts';
import { RawEngine } from '../support/raw-engine.ts';
import { promptIds, WireEngine } from '../support/wire-engine.ts';

const TOOL = { type: 'function', name: 'f', parameters: { type: 'object', properties: {} } };
const { type: _, ...FUNCTION } = TOOL;
const MESSAGES = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'How many?' },
];

for (const kind of ['vllm', 'sglang'] as const) {
  describe(`llm-proxy counting before ${kind}`, () => {
    let engine: WireEngine;
    let proxy: TestProxy;
    let base: string;
    before(async () => {
      engine = await WireEngine.start(kind);
      proxy = await TestProxy.start({ engineUrl: engine.url, kind });
      base = `${proxy.url}/s/${await proxy.admit('count-0')}`;
    });
    after(async () => {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    const ask = async (
      path: string,
      body: object,
    ): Promise<{ status: number; body: Record<string, unknown> }> => {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };

    it('counts as the model is given it, in the form of each dialect, and records nothing', async () => {
      const length = promptIds(MESSAGES).length;
      const responses = { instructions: 'Be brief.', input: 'How many?', tools: [TOOL] };
      const inputTokens = await ask('/v1/responses/input_tokens', responses);
      expect(inputTokens.body).to.deep.equal({ object: 'response.input_tokens', input_tokens: length });
      expect(engine.bodies.at(-1)).to.deep.include({ tools: [{ type: 'function', function: FUNCTION }] });
      const anthropic = {
        model: 'm',
        system: 'Be brief.',
        messages: [{ role: 'user', content: 'How many?' }],
      };
      const counted = await ask('/v1/messages/count_tokens', anthropic);
      expect(counted.body).to.deep.equal({ input_tokens: length });
      const google = {
        systemInstruction: { parts: [{ text: 'Be brief.' }] },
        contents: [{ role: 'user', parts: [{ text: 'How many?' }] }],
      };
      const total = await ask('/v1beta/models/m:countTokens', google);
      expect(total.body).to.include({ totalTokens: length });
      expect(await proxy.records('count-0')).to.deep.equal([]);
    });

    it('tells the ids of a conversation and of a text', async () => {
      const tokens = promptIds(MESSAGES);
      const expected = { count: tokens.length, max_model_len: 4096, tokens, token_strs: null };
      for (const path of ['/tokenize', '/v1/tokenize']) {
        expect((await ask(path, { messages: MESSAGES })).body).to.deep.equal(expected);
      }
      const text = await ask('/tokenize', { prompt: 'ab', add_special_tokens: false });
      expect(text.body).to.include({ count: 2 });
      expect(engine.bodies.at(-1)).to.include({ prompt: 'ab', add_special_tokens: false });
    });

    it('asks for the prompt with the end that a call would have', async () => {
      const messages = [...MESSAGES.slice(1), { role: 'assistant', content: 'Four, as' }];
      await ask('/v1/messages/count_tokens', { model: 'm', messages });
      const prefilled = { continue_final_message: true, add_generation_prompt: false };
      const { add_generation_prompt: _, ...atSglang } = prefilled;
      const asked = engine.bodies.at(-1);
      if (kind === 'vllm') expect(asked).to.include(prefilled);
      // SGLang 0.5.23 refuses the two together, and knows the second one in no call.
      else expect(asked).to.include(atSglang).and.not.have.property('add_generation_prompt');
      await ask('/tokenize', { messages, add_generation_prompt: false });
      if (kind === 'vllm') expect(engine.bodies.at(-1)).to.include({ add_generation_prompt: false });
      else expect(engine.bodies.at(-1)).to.not.have.property('add_generation_prompt');
      await ask('/tokenize', { messages });
      expect(engine.bodies.at(-1)).to.not.have.any.keys(prefilled);
    });

    it('asks for the prompt with the effort that a call would have', async () => {
      const settled = async (more: object) => {
        await ask('/tokenize', { messages: MESSAGES, ...more });
        const { reasoning_effort, chat_template_kwargs } = engine.bodies.at(-1)!;
        return { reasoning_effort, chat_template_kwargs };
      };
      const off = { chat_template_kwargs: { enable_thinking: false } };
      const low = { reasoning_effort: 'low', ...off };
      if (kind === 'sglang') {
        expect(await settled(low)).to.deep.equal(low);
        return;
      }
      // vLLM 0.32's question for ids has no such member; its calls give the template these.
      const kwargs = async (more: object) => (await settled(more)).chat_template_kwargs;
      const effort = (reasoning_effort: string) => kwargs({ reasoning_effort });
      expect(await effort('low')).to.deep.equal({ enable_thinking: true, reasoning_effort: 'low' });
      expect(await effort('none')).to.deep.equal({ enable_thinking: false, reasoning_effort: 'none' });
      expect(await kwargs(low)).to.deep.equal({ enable_thinking: false, reasoning_effort: 'low' });
      expect(await kwargs(off)).to.deep.equal({ enable_thinking: false });
    });

    it('counts the thinking of earlier replies', async () => {
      const thinking = { type: 'thinking', thinking: 'why', signature: '' };
      const said = { role: 'assistant', content: [thinking, { type: 'text', text: 'Four.' }] };
      const [, user] = MESSAGES;
      await ask('/v1/messages/count_tokens', { model: 'm', messages: [user, said, user] });
      // The one name is known to vLLM 0.32's question for ids, the other one to older ones and to SGLang.
      const names = kind === 'vllm' ? { reasoning: 'why' } : {};
      expect(engine.bodies.at(-1)!.messages[1]).to.deep.equal({
        ...{ role: 'assistant', content: 'Four.', reasoning_content: 'why' },
        ...names,
      });
    });

    it('counts no more when the session is closed', async () => {
      const secret = await proxy.admit('count-closed');
      const ref = { sessionId: 'count-closed', attempt: 1 };
      await proxy.client.closeSession(ref);
      const body = JSON.stringify({ input: 'x' });
      const path = `${proxy.url}/s/${secret}/v1/responses/input_tokens`;
      expect((await fetch(path, { method: 'POST', body })).status).to.equal(410);
    });

    it('refuses what is no prompt, with the field', async () => {
      const bare = await ask('/tokenize', {});
      expect(bare).to.have.nested.property('body.error.param', 'prompt');
      const role = await ask('/tokenize', { messages: [{ role: 'nobody', content: 'x' }] });
      expect(role).to.have.nested.property('body.error.param', 'messages[0].role');
      const count = await ask('/v1/responses/input_tokens', { input: [{ type: 'odd' }] });
      expect([bare.status, role.status, count.status]).to.deep.equal([400, 400, 400]);
    });
  });
}

describe('llm-proxy counting before other engines', () => {
  const countAt = async (kind: 'llamacpp' | 'openai', engine: RawEngine): Promise<Response> => {
    await using proxy = await TestProxy.start({ engineUrl: engine.url, kind, modelServed: 'm' });
    const secret = await proxy.admit('count-1');
    const body = JSON.stringify({ input: 'How many?' });
    const headers = { 'content-type': 'application/json' };
    const path = `${proxy.url}/s/${secret}/v1/responses/input_tokens`;
    const answer = await fetch(path, { method: 'POST', headers, body });
    return new Response(await answer.text(), { status: answer.status });
  };

  it('has llama.cpp make the text of a conversation, and its ids of that', async () => {
    await using engine = await RawEngine.start(({ path, body }) => {
      if (path === '/apply-template') return { body: { prompt: `<${body.messages[0].content}>` } };
      if (path === '/tokenize') return { body: { tokens: [...body.content].map((_, i) => i) } };
      return { body: { data: [{ id: 'm' }] } };
    });
    const answer = await countAt('llamacpp', engine);
    expect(await answer.json()).to.deep.equal({ object: 'response.input_tokens', input_tokens: 11 });
  });

  it('says so where an engine does not count', async () => {
    await using engine = await RawEngine.start(() => ({ body: { data: [{ id: 'm' }] } }));
    const answer = await countAt('openai', engine);
    expect(answer.status).to.equal(404);
    expect(await answer.json()).to.have.nested.property('error.code', 'not_found');
    expect(engine.at('/tokenize')).to.deep.equal([]);
  });
});
