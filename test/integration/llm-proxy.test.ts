// The llm-proxy against a real nats-server and an HTTP engine: what a harness gets, and what is recorded.
import { toJsonString } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Completion, CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { unpackFloats, unpackIds } from '../../services/common/columns.ts';
import { promptsOf, readEvents, TestProxy } from '../support/llm-proxy.ts';
import {
  logprobsOf,
  messageOf,
  plainBehaviour,
  promptIds,
  sampledIds,
  type WireBody,
  WireEngine,
  type WireReply,
} from '../support/wire-engine.ts';

type Message = WireBody['messages'][number];
type Chunk = {
  model: string;
  choices: { delta: Record<string, unknown>; logprobs?: unknown; finish_reason: string | null }[];
  usage?: object;
};

const TOOL_REPLY: WireReply = {
  reasoning: 'hm \u{1F914}',
  content: '\n\nCreating  it. \n\n',
  toolCalls: [
    { id: 'call_1', name: 'bash', arguments: '{ "command" : "ls  \\u006c" }' },
    { id: 'call_2', name: 'read', arguments: '{"path":"ä/\\n"}' },
  ],
};
const ids = (record: Completion): number[] => [...unpackIds(record.sampledIds)];

for (const kind of ['vllm', 'sglang'] as const) {
  describe(`llm-proxy with ${kind}`, () => {
    let engine: WireEngine;
    let proxy: TestProxy;
    before(async () => {
      engine = await WireEngine.start(kind);
      proxy = await TestProxy.start({ engineUrl: engine.url, kind });
    });
    beforeEach(() => {
      engine.behaviour = plainBehaviour();
    });
    after(async () => {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    it('answers a call, and records what was served and sampled', async () => {
      const capability = await proxy.admit('plain-0');
      engine.behaviour.reply = () => ({ content: 'hi there' });
      const messages = [{ role: 'user', content: 'hello' }];
      const answer = await proxy.chat(capability, { model: 'alias', messages, temperature: 0.5 });
      expect(answer.status).to.equal(200);
      const body = (await answer.json()) as { model: string; choices: Record<string, unknown>[] } & Record<
        string,
        unknown
      >;
      expect(body.model).to.equal('alias');
      expect(body.choices[0]).to.deep.equal({
        index: 0,
        message: { role: 'assistant', content: 'hi there', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      });
      expect(Object.keys(body)).to.have.members(['id', 'object', 'created', 'model', 'choices', 'usage']);

      const [record] = await proxy.records('plain-0');
      const sampled = sampledIds({ content: 'hi there' });
      expect(promptsOf([record!])[0]).to.deep.equal(promptIds(messages));
      expect(ids(record!)).to.deep.equal(sampled);
      expect([...unpackFloats(record!.logprobs!)]).to.deep.equal(logprobsOf(sampled));
      expect(record).to.include({
        index: 0,
        baseIndex: -1,
        finishReason: 'stop',
        model: 'served',
        engine: kind,
      });
      expect(record).to.include({
        trainable: true,
        role: 'main',
        errorReason: '',
        promptLength: promptIds(messages).length,
      });
      expect(record!.sampling).to.deep.equal({ temperature: 0.5 });
      expect(record!.usage).to.include({ completionTokens: sampled.length, cachedTokens: 3 });
      expect(record!.policyVersion).to.equal(kind === 'sglang' ? 7n : 0n);
      expect(record!.startSeq < record!.endSeq).to.equal(true);
      const bodies = Object.values(record!.messageBodies).map((text) => JSON.parse(text));
      expect(bodies).to.deep.include.members([messages[0], messageOf({ content: 'hi there' })]);
      expect(toJsonString(CompletionSchema, record!)).to.not.contain(capability);
    }).timeout(30_000);

    it('asks the engine for ids in its own words, with its own model name', async () => {
      const capability = await proxy.admit('fields-0');
      const messages = [{ role: 'developer', content: 'be brief' }];
      const asked = {
        model: 'alias',
        messages,
        input_ids: [1],
        return_hidden_states: true,
        store: false,
        guided_regex: 'x',
      };
      await (await proxy.chat(capability, asked)).text();
      await (await proxy.chat(capability, { ...asked, stream: true })).text();
      const [whole, stream] = engine.bodies.slice(-2);
      const fields =
        kind === 'vllm'
          ? [
              { return_token_ids: true, top_logprobs: 0 },
              { return_token_ids: true, top_logprobs: 0 },
            ]
          : [
              { return_prompt_token_ids: true, return_token_ids: true, return_meta_info: true },
              { return_input_ids_in_sglext: true, return_output_ids_in_sglext: true },
            ];
      const expected = {
        model: 'served',
        logprobs: true,
        guided_regex: 'x',
        messages: [{ role: 'system', content: 'be brief' }],
      };
      expect(whole).to.deep.equal({ ...expected, ...fields[0], stream: false });
      expect(stream).to.deep.equal({
        ...expected,
        ...fields[1],
        stream: true,
        stream_options: { include_usage: true },
      });
    });

    it('puts the sampling of the task in place of what the harness asks for', async () => {
      const sampling = { temperature: 1, topP: 0.9, topK: -1, maxTokens: 64, seedBase: 12 };
      const capability = await proxy.admit('sampling-0', 1, { sampling });
      const messages = [{ role: 'user', content: 'x' }];
      await (
        await proxy.chat(capability, { messages, temperature: 0, max_completion_tokens: 9, stop: ['.'] })
      ).text();
      const set = { temperature: 1, top_p: 0.9, top_k: -1, max_tokens: 64, seed: 12, stop: ['.'] };
      expect(engine.bodies.at(-1)).to.include({
        temperature: 1,
        top_p: 0.9,
        top_k: -1,
        max_tokens: 64,
        seed: 12,
      });
      expect(engine.bodies.at(-1)).to.not.have.property('max_completion_tokens');
      expect((await proxy.records('sampling-0'))[0]!.sampling).to.deep.equal(set);
    });

    it('streams content, reasoning and tool calls as they came, chunk for chunk', async () => {
      const capability = await proxy.admit('stream-0');
      engine.behaviour.reply = () => TOOL_REPLY;
      const asked = { model: 'alias', messages: [{ role: 'user', content: 'go' }], stream: true };
      const { events, whole } = await readEvents(await proxy.chat(capability, asked));
      const direct = await fetch(`${engine.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(asked),
      });
      const expected = (await readEvents(direct)).events;
      const deltas = (all: string[]): unknown[] =>
        all
          .slice(0, -1)
          .map((data) => JSON.parse(data) as Chunk)
          .flatMap(({ choices }) => choices.map(({ delta, finish_reason }) => ({ delta, finish_reason })));
      expect(whole).to.equal(true);
      expect(events.at(-1)).to.equal('[DONE]');
      // Of the engine's first chunk, the content that says nothing is left out.
      expected[0] = expected[0]!.replace(',"content":""', '');
      expect(deltas(events)).to.deep.equal(deltas(expected));
      for (const data of events.slice(0, -1)) {
        expect(data).to.not.match(/token_ids|sglext|"logprob"|usage|served/);
        expect((JSON.parse(data) as Chunk).model).to.equal('alias');
      }
      const [record] = await proxy.records('stream-0');
      expect(ids(record!)).to.deep.equal(sampledIds(TOOL_REPLY));
      expect([...unpackFloats(record!.logprobs!)]).to.deep.equal(logprobsOf(ids(record!)));
      expect(record!.finishReason).to.equal('tool_calls');
      expect(JSON.parse(record!.messageBodies[record!.replyDigest]!)).to.deep.equal(messageOf(TOOL_REPLY));
    });

    it('shows usage and logprobs to a harness that asks for them', async () => {
      const capability = await proxy.admit('shown-0');
      const messages = [{ role: 'user', content: 'x' }];
      const asked = { messages, logprobs: true, top_logprobs: 2 };
      const whole = (await (await proxy.chat(capability, asked)).json()) as {
        choices: { logprobs: { content: unknown[] } }[];
      };
      expect(whole.choices[0]!.logprobs.content).to.have.length(6);
      expect(engine.bodies.at(-1)).to.include({ top_logprobs: 2 });
      const stream = await proxy.chat(capability, {
        ...asked,
        stream: true,
        stream_options: { include_usage: true },
      });
      const { events } = await readEvents(stream);
      expect(JSON.parse(events.at(-2)!)).to.have.nested.property('usage.completion_tokens', 6);
      expect(events.join()).to.contain('"logprob"').and.not.contain('token_ids');
    });

    it('stores each id and each message once, however long the session gets', async () => {
      const capability = await proxy.admit('turns-0');
      const messages: Message[] = [{ role: 'user', content: 'begin '.repeat(200) }];
      for (let turn = 0; turn < 12; turn++) {
        engine.behaviour.reply = () => ({ content: `answer ${turn} `.repeat(20) });
        const answer = await proxy.chat(capability, { messages, stream: turn % 2 === 0 });
        if (turn % 2 === 0) await readEvents(answer);
        else await answer.json();
        messages.push({ role: 'assistant', content: `answer ${turn} `.repeat(20) });
        messages.push({ role: 'user', content: `next ${turn}` });
      }
      const records = await proxy.records('turns-0');
      const prompts = promptsOf(records);
      for (const [turn, record] of records.entries()) {
        expect(prompts[turn]).to.deep.equal(promptIds(messages.slice(0, turn * 2 + 1)));
        expect(record).to.include({ index: turn, baseIndex: turn - 1 });
        if (turn > 0) expect(unpackIds(record.promptSuffixIds).length).to.be.lessThan(40);
        expect(Object.keys(record.messageBodies)).to.have.length(turn === 0 ? 2 : 2);
        expect(record).to.include({ baseMessageCount: turn * 2 });
        expect(record.messageDigests).to.have.length(1);
      }
    });

    it('knows a reply again when the harness writes it down otherwise', async () => {
      const capability = await proxy.admit('again-0');
      engine.behaviour.reply = () => ({
        toolCalls: [{ id: 'c', name: 'bash', arguments: '{ "b":1, "a":"\\u006c" }' }],
      });
      const user = { role: 'user', content: 'go' };
      await (await proxy.chat(capability, { messages: [user], stream: true })).text();
      const call = { id: 'c', type: 'function', function: { name: 'bash', arguments: '{"a":"l","b":1}' } };
      const echoed = { role: 'assistant', content: '', tool_calls: [call], refusal: null };
      await (await proxy.chat(capability, { messages: [user, echoed], stream: true })).text();
      const [, second] = await proxy.records('again-0');
      expect(second).to.deep.include({ baseIndex: 0, baseMessageCount: 2, messageDigests: [] });
    });

    it('records parallel calls one behind another, each with the order of its begin and end', async () => {
      const capability = await proxy.admit('parallel-0');
      engine.behaviour.delayMs = 5;
      const asks = Array.from({ length: 16 }, (_, i) => [{ role: 'user', content: `branch ${i}` }]);
      await Promise.all(
        asks.map(async (messages, i) =>
          (await proxy.chat(capability, { messages, stream: i % 2 === 0 })).text(),
        ),
      );
      const records = await proxy.records('parallel-0');
      expect(records.map(({ index }) => index)).to.deep.equal([...asks.keys()]);
      const orders = records.flatMap(({ startSeq, endSeq }) => [startSeq, endSeq]).map(Number);
      expect(new Set(orders).size).to.equal(32);
      const served = promptsOf(records).map((prompt) => prompt.join());
      expect(served).to.have.members(asks.map((messages) => promptIds(messages).join()));
    });

    it('leaves a hole where the engine gives no logprob', async () => {
      const capability = await proxy.admit('hole-0');
      engine.behaviour.hole = 2;
      for (const stream of [false, true]) {
        await (await proxy.chat(capability, { messages: [{ role: 'user', content: 'x' }], stream })).text();
      }
      for (const record of await proxy.records('hole-0')) {
        const logprobs = [...unpackFloats(record.logprobs!)];
        expect(logprobs.map(Number.isNaN)).to.deep.equal([false, false, true, false, false, false]);
      }
    });

    it('names what is missing where the engine returns no token ids', async () => {
      const capability = await proxy.admit('noids-0');
      engine.behaviour.ids = false;
      const messages = [{ role: 'user', content: 'x' }];
      const answer = await proxy.chat(capability, { messages });
      expect(answer.status).to.equal(502);
      const { error } = (await answer.json()) as { error: { code: string; message: string } };
      expect(error.code).to.equal('engine_no_token_ids');
      expect(error.message).to.contain('return_token_ids');
      const stream = await proxy.chat(capability, { messages, stream: true }).catch(() => undefined);
      if (kind === 'vllm') expect(stream?.status).to.equal(502);
      // SGLang tells ids at the end: the stream is cut, perhaps before its head was on the wire.
      else expect(stream === undefined || (await readEvents(stream)).whole === false).to.equal(true);
      // Of the stream, what was sampled until then is counted.
      const [record, ...others] = await proxy.records('noids-0');
      expect(record).to.include({ noTokenIds: true, errorReason: 'ENGINE_NO_TOKEN_IDS', replyDigest: '' });
      expect(record?.sampledIds).to.have.length(0);
      expect(others).to.deep.equal([]);
      const closed = await proxy.client.closeSession({ sessionId: 'noids-0', attempt: 1 });
      expect(closed.lastFailure?.reason).to.equal('ENGINE_NO_TOKEN_IDS');
      expect(closed.lastFailure?.infrastructure).to.equal(true);
    });

    it('tells of its engine', async () => {
      const { engines } = await proxy.client.listEngines({});
      const [{ baseUrl, healthy, model, problem }] = engines as [(typeof engines)[number]];
      expect({ baseUrl, healthy, model, problem }).to.deep.equal({
        baseUrl: engine.url,
        healthy: true,
        model: 'served',
        problem: '',
      });
    });
  });
}
