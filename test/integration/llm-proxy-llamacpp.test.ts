// What llama-server is asked where it has other words than those of openai-chat, or none.
import { expect } from 'chai';
import { TestProxy } from '../support/llm-proxy.ts';
import { RawEngine, type RawRequest } from '../support/raw-engine.ts';

const MESSAGES = [{ role: 'user', content: 'x' }];
const [F, G] = ['f', 'g'].map((name) => ({ type: 'function', function: { name, parameters: {} } }));

const answer = ({ path }: RawRequest, content = 'done', sampled = content) => {
  if (path === '/v1/models') return { body: { data: [{ id: 'm' }] } };
  if (path === '/apply-template') return { body: { prompt: 'p' } };
  if (path === '/tokenize') return { body: { tokens: [1] } };
  const message = { role: 'assistant', content };
  const verbose = { prompt: 'p', content: sampled, tokens: [5], tokens_evaluated: 1 };
  return { body: { choices: [{ index: 0, message, finish_reason: 'stop' }], __verbose: verbose } };
};

describe('llm-proxy before llama-server', () => {
  let engine: RawEngine;
  let proxy: TestProxy;
  before(async () => {
    engine = await RawEngine.start((request) => answer(request));
    proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'llamacpp' });
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  /** What it is sent, and the record. */
  async function called(session: string, more: object) {
    const reply = await proxy.chat(await proxy.admit(session), { messages: MESSAGES, ...more });
    expect(reply.status).to.equal(200);
    const [record] = await proxy.records(session);
    return { sent: engine.at('/v1/chat/completions').at(-1)!.body, record: record! };
  }

  it('penalises repetition by its own name for that, on the record by the other', async () => {
    const { sent, record } = await called('penalty', { repetition_penalty: 1.5 });
    expect(sent).to.include({ repeat_penalty: 1.5 }).and.not.have.property('repetition_penalty');
    expect(record.sampling).to.include({ repetition_penalty: 1.5 });
  });

  it('has it call the tool that is chosen by its name, as no other is shown', async () => {
    const named = { type: 'function', function: { name: 'g' } };
    const chosen = await called('chosen', { tools: [F, G], tool_choice: named });
    expect(chosen.sent).to.deep.include({ tools: [G], tool_choice: 'required' });
    expect(chosen.record.sampling).to.include({ tool_choice: 'required' });
    const alone = await called('alone', { tools: [G], tool_choice: 'required' });
    expect(chosen.record.toolsDigest).to.equal(alone.record.toolsDigest);
    const any = await called('any', { tools: [F, G], tool_choice: 'required' });
    expect(any.sent).to.deep.include({ tools: [F, G], tool_choice: 'required' });
  });

  it('goes on with a text that was begun, and does not say that again', async () => {
    const url = `${proxy.url}/s/${await proxy.admit('begun')}/v1/messages`;
    const asked = [...MESSAGES, { role: 'assistant', content: 'Four, as' }];
    const said = async (content: string, sampled: string): Promise<unknown> => {
      engine.answer = (request) => answer(request, content, sampled);
      const body = JSON.stringify({ model: 'm', max_tokens: 9, messages: asked });
      const reply = (await (await fetch(url, { method: 'POST', body })).json()) as { content: object[] };
      engine.answer = (request) => answer(request);
      return reply.content;
    };
    const text = (text: string) => [{ type: 'text', text }];
    // As the one of llama-cpp-python 0.3.36 does.
    expect(await said('Four, as in four', ' in four')).to.deep.equal(text(' in four'));
    expect(await said('Four, as in', ' in<tool_call>{}</tool_call>')).to.deep.equal(text(' in'));
    // As one does that does not.
    expect(await said(' in four', ' in four')).to.deep.equal(text(' in four'));
    expect(await said('Four, as Four, as', 'Four, as Four, as')).to.deep.equal(text('Four, as Four, as'));
  });

  it('counts the tokens of what a call would show', async () => {
    const path = `${proxy.url}/s/${await proxy.admit('count')}/v1/messages/count_tokens`;
    const tools = ['f', 'g'].map((name) => ({ name, input_schema: {} }));
    const body = { messages: MESSAGES, tools, tool_choice: { type: 'tool', name: 'g' } };
    const counted = await fetch(path, { method: 'POST', body: JSON.stringify(body) });
    expect(await counted.json()).to.deep.equal({ input_tokens: 1 });
    expect(engine.at('/apply-template').at(-1)!.body.tools).to.deep.equal([G]);
  });
});
