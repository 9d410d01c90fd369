import { expect } from 'chai';
import type { RunningEngine } from './server.ts';
import {
  BASH,
  type Body,
  chat,
  chatStream,
  joined,
  post,
  type Reply,
  startTestEngine,
  user,
} from './testing.ts';
import { loadModel } from './tokenizer/tokenizer.ts';

const SCRIPT = `
variants:
  - name: one
    steps:
      - { think: Look first., text: 'I look: 你好.', calls: [{ shell: ls }, { shell: 'cat "x"' }] }
      - { text: That is all. }
  - { name: two, steps: [{ text: The other one. }] }
`;
/** Dialects that tell ids where they are asked for them. */
type WithIds = 'sglang' | 'vllm';

const ASK: Record<WithIds, Body> = {
  sglang: { return_token_ids: true, return_prompt_token_ids: true, return_meta_info: true, logprobs: true },
  vllm: { return_token_ids: true, logprobs: true },
};
const ASK_STREAM: Record<WithIds, Body> = {
  sglang: { return_input_ids_in_sglext: true, return_output_ids_in_sglext: true, logprobs: true },
  vllm: ASK.vllm,
};
const BODY = { messages: [user('Go.')], tools: [BASH], seed: 0 };

/** Prompt and reply ids, wherever the dialect has them. */
function ids(dialect: WithIds, reply: Reply): { prompt: number[]; response: number[] } {
  const [choice] = reply.choices;
  if (dialect === 'vllm') return { prompt: reply.prompt_token_ids, response: choice.token_ids ?? [] };
  return { prompt: choice.prompt_token_ids, response: choice.response_token_ids };
}

function streamIds(dialect: WithIds, events: Reply[]): { prompt: number[]; response: number[] } {
  if (dialect === 'vllm') return { prompt: events[0]!.prompt_token_ids, response: joined(events).token_ids };
  const { input_ids, output_ids } = events.find((event) => event.sglext !== undefined)!.sglext!;
  return { prompt: input_ids, response: output_ids[0] };
}

for (const dialect of ['sglang', 'vllm'] as const) {
  describe(`the scripted engine as ${dialect}`, function () {
    this.timeout(30_000);
    const { tokenizer } = loadModel();
    let engine: RunningEngine;
    before(async () => {
      engine = await startTestEngine({ dialect, script: SCRIPT });
    });
    after(() => engine[Symbol.asyncDispose]());
    const whole = (more: Body = {}, switches?: string): Promise<Reply> =>
      chat(engine.url, { ...BODY, ...ASK[dialect], ...more }, switches);
    const stream = (more: Body = {}, switches?: string): Promise<Reply[]> =>
      chatStream(engine.url, { ...BODY, ...ASK_STREAM[dialect], ...more }, switches);

    it('gives ids that say the prompt and the reply', async () => {
      const { prompt, response } = ids(dialect, await whole());
      expect(tokenizer.decode(prompt)).to.match(/^<\|im_start\|>system\n[\s\S]*<\|im_start\|>assistant\n$/);
      expect(tokenizer.decode(response)).to.equal(
        '<think>\nLook first.\n</think>\n\nI look: 你好.\n<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n' +
          '</tool_call>\n<tool_call>\n{"name": "bash", "arguments": {"command": "cat \\"x\\""}}\n</tool_call><|im_end|>',
      );
    });

    it('parses its own text', async () => {
      const { message, finish_reason } = (await whole()).choices[0];
      expect(message.content).to.equal('I look: 你好.');
      expect(message.reasoning ?? message.reasoning_content).to.equal('Look first.');
      const commands = message.tool_calls!.map((call) => JSON.parse(call.function.arguments).command);
      expect(commands).to.deep.equal(['ls', 'cat "x"']);
      expect(new Set(message.tool_calls!.map((call) => call.id)).size).to.equal(2);
      expect(finish_reason).to.equal('tool_calls');
    });

    for (const switches of ['', 'tokens_per_chunk=7', 'tool_format=xml', 'keep_content_newline=true']) {
      it(`streams what it answers whole ${switches}`, async () => {
        const reply = await whole({}, switches === '' ? undefined : switches);
        const events = await stream(
          { stream_options: { include_usage: true } },
          switches === '' ? undefined : switches,
        );
        const { message, logprobs, finish_reason } = reply.choices[0];
        const put = joined(events);
        expect(put.role).to.equal('assistant');
        expect(put.content).to.equal(message.content);
        expect(put.reasoning).to.equal(message.reasoning ?? message.reasoning_content);
        expect(put.tool_calls).to.deep.equal(message.tool_calls!.map((call) => call.function));
        expect(put.finish_reason).to.equal(finish_reason);
        expect(put.logprobs).to.deep.equal(logprobs?.content);
        expect(streamIds(dialect, events)).to.deep.equal(ids(dialect, reply));
        expect(events.at(-1)?.usage.completion_tokens).to.equal(reply.usage.completion_tokens);
      });
    }

    it('renders its own reply so that the next prompt goes on from it', async () => {
      const first = await whole();
      const { message } = first.choices[0];
      const results = message.tool_calls!.map((call) => ({
        role: 'tool',
        tool_call_id: call.id,
        content: 'x',
      }));
      const second = await whole({ messages: [...BODY.messages, message, ...results] });
      const { prompt, response } = ids(dialect, first);
      const next = ids(dialect, second).prompt;
      expect(next.slice(0, prompt.length + response.length)).to.deep.equal([...prompt, ...response]);
      expect(second.choices[0].message.content).to.equal('That is all.');
      expect(second.choices[0].finish_reason).to.equal('stop');
    });

    it('has one logprob a token, with the likeliest tokens if they are wanted', async () => {
      const reply = await whole({ top_logprobs: 3 });
      const { content } = reply.choices[0].logprobs!;
      expect(content).to.have.length(ids(dialect, reply).response.length);
      for (const entry of content) expect(entry.top_logprobs).to.have.length(3);
      expect(content.at(-1)?.token).to.equal('<|im_end|>');
      expect(reply).to.have.nested.property('usage.completion_tokens', content.length);
      expect((await whole()).choices[0].logprobs?.content[3]).to.include({ logprob: content[3]?.logprob });
      expect((await whole({ logprobs: false })).choices[0].logprobs).to.equal(null);
    });

    it('gives no ids that were not asked for', async () => {
      const text = JSON.stringify([await chat(engine.url, BODY), ...(await chatStream(engine.url, BODY))]);
      expect(text).to.not.match(/"(prompt_token_ids|token_ids|response_token_ids)":\[/);
      expect(text).to.not.contain('sglext');
    });

    it('answers n choices, each with its seed', async () => {
      const reply = await whole({ n: 3, seed: 0 });
      const contents = reply.choices.map((choice) => choice.message.content);
      expect(contents).to.deep.equal(['I look: 你好.', 'The other one.', 'I look: 你好.']);
      const [a, , c] = reply.choices.map((choice) => choice.logprobs?.content.map((one) => one.logprob));
      expect(a).to.not.deep.equal(c);
      const events = await stream({ n: 3, seed: 0 });
      expect([0, 1, 2].map((index) => joined(events, index).content)).to.deep.equal(contents);
    });

    it('stops at its token limit and at stop strings', async () => {
      const cut = await whole({ max_tokens: 5 });
      expect(cut.choices[0].finish_reason).to.equal('length');
      expect(ids(dialect, cut).response).to.have.length(5);
      const stopped = await whole({ stop: ['你'] });
      expect(stopped.choices[0].message.content).to.equal('I look: ');
      expect(stopped.choices[0].stop_reason ?? stopped.choices[0].matched_stop).to.equal('你');
    });

    it('refuses as the engine does', async () => {
      const long = await post(engine.url, { ...BODY, max_tokens: 300_000 });
      const body = (await long.json()) as { message?: string; error?: { message: string } };
      expect(long.status).to.equal(400);
      expect(body.error?.message ?? body.message)
        .to.contain('context length')
        .and.contain('262144');
      for (const [wrong, named] of [
        [{ messages: [] }, 'messages'],
        [{ ...BODY, n: 0 }, 'n'],
        [{ messages: [{ role: 'king', content: '' }] }, 'messages[0].role'],
      ] as const) {
        const refused = await post(engine.url, wrong);
        expect(refused.status).to.equal(400);
        expect(await refused.text()).to.contain(named);
      }
      expect((await fetch(`${engine.url}/v1/nothing`)).status).to.equal(404);
      expect((await post(engine.url, BODY, 'token_mss=1')).status).to.equal(400);
    });

    it('lists its model, its health, and tokens of text and messages', async () => {
      const models = (await (await fetch(`${engine.url}/v1/models`)).json()) as { data: unknown[] };
      expect(models.data[0]).to.include({ id: 'scripted-qwen3', max_model_len: 262_144 });
      expect((await fetch(`${engine.url}/health`)).status).to.equal(200);
      const tokenize = async (body: Body): Promise<{ tokens: number[] }> => {
        const answer = await fetch(`${engine.url}/tokenize`, { method: 'POST', body: JSON.stringify(body) });
        return (await answer.json()) as { tokens: number[] };
      };
      expect((await tokenize({ prompt: 'Hello' })).tokens).to.deep.equal(tokenizer.encode('Hello'));
      const { prompt } = ids(dialect, await whole());
      expect(await tokenize(BODY)).to.deep.include({ tokens: prompt, count: prompt.length });
    });
  });
}

describe('what only one of the engines does', function () {
  this.timeout(30_000);

  it('sglang: refuses ids outside sglext in a stream, takes input_ids, tells weight versions', async () => {
    await using engine = await startTestEngine({ dialect: 'sglang', script: SCRIPT });
    expect((await post(engine.url, { ...BODY, stream: true, return_token_ids: true })).status).to.equal(400);
    const given = await chat(engine.url, { ...BODY, input_ids: [1, 2, 3], return_prompt_token_ids: true });
    expect(given.choices[0].prompt_token_ids).to.deep.equal([1, 2, 3]);
    const slow = chat(engine.url, { ...BODY, ...ASK.sglang }, 'token_ms=10');
    await new Promise((resolve) => setTimeout(resolve, 100));
    await fetch(`${engine.url}/update_weight_version`, { method: 'POST', body: '{"new_version":"7"}' });
    const reply = await slow;
    const spans = reply.metadata.weight_versions;
    expect(spans.map((span) => span.version)).to.deep.equal(['default', '7']);
    expect([spans[0].start, spans[0].end, spans[1].end]).to.deep.equal([
      0,
      spans[1].start,
      reply.usage.completion_tokens,
    ]);
    expect(reply.choices[0].meta_info).to.deep.include({ weight_version: '7', weight_versions: spans });
    expect(reply.choices[0].meta_info.output_token_logprobs[1]).to.deep.equal([
      reply.choices[0].logprobs?.content[1]?.logprob,
      reply.choices[0].response_token_ids[1],
      null,
    ]);
  });

  it('vllm: knows its model by name', async () => {
    await using engine = await startTestEngine({ dialect: 'vllm', script: SCRIPT });
    expect((await post(engine.url, { ...BODY, model: 'other' })).status).to.equal(404);
    expect((await post(engine.url, { ...BODY, model: 'scripted-qwen3' })).status).to.equal(200);
    const named = await chat(engine.url, { ...BODY, ...ASK.vllm, return_tokens_as_token_ids: true });
    const [choice] = named.choices;
    expect(choice.logprobs?.content[0]?.token).to.equal(`token_id:${choice.token_ids?.[0]}`);
  });
});
