// Anthropic's own client in front of the llm-proxy: what it makes of a stream is what it gets whole, in generated
// conversations, and what it sends back is what the engine said.
import Anthropic from '@anthropic-ai/sdk';
import type {
  ContentBlockParam,
  Message,
  MessageCreateParamsNonStreaming,
  MessageParam,
  Tool,
} from '@anthropic-ai/sdk/resources/messages';
import { expect } from 'chai';
import { digestMessage } from '../../services/llm-proxy/domain/messages.ts';
import { chance, PIXEL, someReply, words } from '../support/generated.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { messageOf, plainBehaviour, promptIds, WireEngine, type WireReply } from '../support/wire-engine.ts';

const TURNS = 4;
const CONVERSATIONS = 12;
const PATH: Tool.InputSchema = { type: 'object', properties: { path: { type: 'string' } } };
const TOOLS: Tool[] = [
  { name: 'read', description: 'Read.', input_schema: PATH },
  { name: 'list', input_schema: PATH, cache_control: { type: 'ephemeral' } },
];
const NAMES = { functions: ['read', 'list'] };
const IMAGE: ContentBlockParam = {
  type: 'image',
  source: { type: 'base64', media_type: 'image/png', data: PIXEL },
};

for (const kind of ['vllm', 'sglang'] as const) {
  describe(`anthropic SDK through the llm-proxy before ${kind}`, () => {
    let engine: WireEngine;
    let proxy: TestProxy;
    let client: Anthropic;
    before(async () => {
      engine = await WireEngine.start(kind);
      proxy = await TestProxy.start({ engineUrl: engine.url, kind });
      const capability = await proxy.admit('sdk-anthropic');
      client = new Anthropic({ baseURL: `${proxy.url}/s/${capability}`, apiKey: 'unused', maxRetries: 0 });
    });
    beforeEach(() => {
      engine.behaviour = plainBehaviour();
    });
    after(async () => {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    /** Whole, and put together from the stream. */
    async function both(
      more: Partial<MessageCreateParamsNonStreaming>,
    ): Promise<{ whole: Message; streamed: Message }> {
      const hello: MessageParam[] = [{ role: 'user', content: 'hello' }];
      const body = { model: 'alias', max_tokens: 100, messages: hello, ...more };
      const whole = await client.messages.create(body);
      const streamed = await client.messages.stream(body).finalMessage();
      return { whole: plain(whole), streamed: plain(streamed) };
    }

    for (const display of ['summarized', 'omitted'] as const) {
      it(`puts a stream together to what it gets whole, thinking ${display}`, async () => {
        const random = chance(display === 'omitted' ? 3 : 4);
        for (let n = 0; n < CONVERSATIONS; n++) {
          const messages: MessageParam[] = [
            { role: 'user', content: [{ type: 'text', text: `q${words(random, 9)}` }, IMAGE] },
          ];
          for (let turn = 0; turn < TURNS; turn++) {
            const said = someReply(random, turn, NAMES);
            engine.behaviour.reply = () => said;
            const { whole, streamed } = await both({
              system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
              messages,
              tools: TOOLS,
              thinking: { type: 'adaptive', display },
            });
            expect(streamed).to.deep.equal(whole);
            expect(whole.stop_reason).to.equal(stopReasonOf(said));
            const { usage } = whole;
            expect(usage.cache_read_input_tokens).to.equal(3);
            messages.push({ role: 'assistant', content: whole.content }, answersTo(whole, random));
            await client.messages.create({ model: 'alias', max_tokens: 9, messages, tools: TOOLS });
            expectReplayed(engine, said);
          }
        }
      });
    }

    it('tells the stop sequence that was met', async () => {
      engine.behaviour.reply = () => ({ content: 'up to', stopped: 'END' });
      const { whole, streamed } = await both({ stop_sequences: ['STOP', 'END'] });
      expect(streamed).to.deep.equal(whole);
      expect(whole).to.include({ stop_reason: 'stop_sequence', stop_sequence: 'END' });
      expect(engine.bodies.at(-1)).to.have.deep.property('stop', ['STOP', 'END']);
    });

    it('completes a call that was cut as the client does', async () => {
      for (const cut of [
        '{"path": "/tmp/a", "text": "half',
        '{"path',
        '{"n": [1, 2',
        '{"on": tru',
        '{"n": 12',
      ]) {
        engine.behaviour.reply = () => ({
          content: 'x',
          toolCalls: [{ id: 'c', name: 'read', arguments: cut }],
          finish: 'length',
        });
        const { whole, streamed } = await both({ tools: TOOLS });
        expect(streamed, cut).to.deep.equal(whole);
        expect(whole.stop_reason).to.equal('max_tokens');
      }
    });

    it('has errors that the client knows, before a stream and within it', async () => {
      const body = { model: 'alias', max_tokens: 9, messages: [{ role: 'user' as const, content: 'x' }] };
      const bad = { ...body, tools: [{ type: 'web_search_20250305' as const, name: 'web_search' as const }] };
      const refused = await client.messages.create(bad).catch((error: unknown) => error);
      expect(refused)
        .to.be.instanceOf(Anthropic.BadRequestError)
        .with.property('message')
        .that.matches(/web_search/);
      const tooLong =
        "This model's maximum context length is 40 tokens. However, your prompt contains 50 input tokens";
      engine.behaviour.status = () => ({ status: 400, body: { error: { message: tooLong, code: 400 } } });
      const overflow = await client.messages
        .stream(body)
        .finalMessage()
        .catch((error: unknown) => error);
      expect(overflow)
        .to.be.instanceOf(Anthropic.BadRequestError)
        .with.nested.property('error.error.message', 'prompt is too long: 50 tokens > 40 maximum');
      engine.behaviour = {
        ...plainBehaviour(),
        cutAfter: 3,
        delayMs: 10,
        reply: () => ({ content: 'several pieces' }),
      };
      const broken = await client.messages
        .stream(body)
        .finalMessage()
        .catch((error: unknown) => error);
      expect(broken)
        .to.be.instanceOf(Anthropic.APIError)
        .with.nested.property('error.error.type', 'api_error');
      const stranger = new Anthropic({ baseURL: `${proxy.url}/s/none`, apiKey: 'unused', maxRetries: 0 });
      const unknown = await stranger.messages.create(body).catch((error: unknown) => error);
      expect(unknown).to.be.instanceOf(Anthropic.AuthenticationError);
    });

    it('is no threads’ keeper to the client’s own tool runner, which then sends the whole conversation', async () => {
      const path = { name: 'read', input_schema: PATH, run: () => 'found' };
      const said = [{ toolCalls: [{ id: 'c', name: 'read', arguments: '{}' }] }, { content: 'done' }];
      engine.behaviour.reply = ({ messages }) => said[messages.length === 1 ? 0 : 1] as WireReply;
      const messages = [{ role: 'user' as const, content: 'hello' }];
      const asked = { model: 'alias', max_tokens: 100, messages };
      const before = engine.bodies.length;
      const last = await client.beta.messages.toolRunner({
        ...asked,
        tools: [{ ...path, parse: () => ({}) }],
      });
      expect(last.content).to.deep.equal([{ type: 'text', text: 'done' }]);
      const roles = engine.bodies.slice(before).map((body) => body.messages.map(({ role }) => role));
      expect(roles).to.deep.equal([['user'], ['user', 'assistant', 'tool']]);
      const thread = client.beta.messages.thread({ model: 'alias', max_tokens: 100 });
      const refused = await thread.send(messages).then(undefined, (error: Error) => error);
      expect(refused).to.include({ status: 400 });
    });

    it('counts the tokens of a prompt', async () => {
      const messages: MessageParam[] = [{ role: 'user', content: 'hello' }];
      const counted = await client.messages.countTokens({ model: 'alias', messages });
      expect(counted.input_tokens).to.equal(promptIds([{ role: 'user', content: 'hello' }]).length);
    });

    it('lists models and finds one', async () => {
      const { data } = await client.models.list();
      expect(data.map(({ id }) => id)).to.deep.equal(['policy']);
      expect(await client.models.retrieve('policy')).to.include({ type: 'model', id: 'policy' });
    });
  });
}

/** Without what the client adds of itself. */
const plain = (message: Message): Message =>
  JSON.parse(
    JSON.stringify(message, (key, value) => (key === 'parsed_output' ? undefined : value)),
  ) as Message;

function stopReasonOf({ finish, toolCalls }: WireReply): string {
  if (finish === 'length') return 'max_tokens';
  return toolCalls === undefined ? 'end_turn' : 'tool_use';
}

function answersTo(message: Message, random: () => number): MessageParam {
  const results = message.content
    .filter((block) => block.type === 'tool_use')
    .map(({ id }): ContentBlockParam => {
      const content = [{ type: 'text' as const, text: `t${words(random, 9)}` }];
      return { type: 'tool_result', tool_use_id: id, content, is_error: random() < 0.2 };
    });
  return { role: 'user', content: [...results, { type: 'text', text: `u${words(random, 9)}` }] };
}

/** The last assistant message that the engine got is what it said, as far as content goes. */
function expectReplayed(engine: WireEngine, said: WireReply): void {
  const { messages } = engine.bodies.at(-1)!;
  const last = messages.findLast(({ role }) => role === 'assistant');
  const digestOf = (message: object): string => digestMessage(JSON.parse(JSON.stringify(message))).digest;
  expect(digestOf(last!)).to.equal(digestOf(messageOf(said)));
}
