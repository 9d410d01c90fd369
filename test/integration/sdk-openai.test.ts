// OpenAI's own client in front of the llm-proxy: what it makes of a stream is what it gets whole, in generated
// conversations, in both of its dialects.
import { expect } from 'chai';
import OpenAI from 'openai';
import type {
  ChatCompletion,
  ChatCompletionCreateParams,
  ChatCompletionMessageParam,
  ChatCompletionTool,
} from 'openai/resources/chat/completions';
import type { Response, ResponseInputItem, Tool } from 'openai/resources/responses/responses';
import { chance, PIXEL, pick, someReply, words } from '../support/generated.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { plainBehaviour, WireEngine, type WireReply } from '../support/wire-engine.ts';

const TURNS = 4;
const CONVERSATIONS = 12;
const PATH = { type: 'object', properties: { path: { type: 'string' } } };
const NAMES = { functions: ['read', 'list'], custom: ['patch'] };

const IMAGE = `data:image/png;base64,${PIXEL}`;

for (const kind of ['vllm', 'sglang'] as const) {
  describe(`openai SDK through the llm-proxy before ${kind}`, () => {
    let engine: WireEngine;
    let proxy: TestProxy;
    let client: OpenAI;
    before(async () => {
      engine = await WireEngine.start(kind);
      proxy = await TestProxy.start({ engineUrl: engine.url, kind });
      const capability = await proxy.admit('sdk-openai');
      client = new OpenAI({ baseURL: `${proxy.url}/s/${capability}/v1`, apiKey: 'unused', maxRetries: 0 });
    });
    beforeEach(() => {
      engine.behaviour = plainBehaviour();
    });
    after(async () => {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    describe('chat', () => {
      const tools: ChatCompletionTool[] = [
        { type: 'function', function: { name: 'read', description: 'Read.', parameters: PATH } },
        { type: 'function', function: { name: 'list', parameters: PATH } },
        { type: 'custom', custom: { name: 'patch', description: 'Free text.' } },
      ];

      /** Whole, and put together from the stream. The client keeps only the last piece of fields that it does not know. */
      async function both(
        body: Omit<ChatCompletionCreateParams, 'stream'>,
      ): Promise<[ChatCompletion, ChatCompletion]> {
        const whole = await client.chat.completions.create({ ...body, stream: false });
        const stream = client.chat.completions.stream({ ...body, stream_options: { include_usage: true } });
        const thoughts = new Map<number, string>();
        stream.on('chunk', ({ choices }) => {
          for (const { index, delta } of choices) {
            const { reasoning_content: piece } = delta as { reasoning_content?: string };
            if (piece !== undefined) thoughts.set(index, (thoughts.get(index) ?? '') + piece);
          }
        });
        const streamed = await stream.finalChatCompletion();
        for (const { index, message } of streamed.choices) {
          if (thoughts.has(index)) Object.assign(message, { reasoning_content: thoughts.get(index) });
          // The client's own, for structured output.
          delete (message as { parsed?: unknown }).parsed;
          for (const call of message.tool_calls ?? []) {
            delete (call as { function?: { parsed_arguments?: unknown } }).function?.parsed_arguments;
          }
        }
        return [whole, streamed as ChatCompletion];
      }

      const comparable = ({ object: _, ...rest }: ChatCompletion): object => rest;

      it('puts a stream together to what it gets whole, turn by turn', async () => {
        const random = chance(8);
        for (let n = 0; n < CONVERSATIONS; n++) {
          const messages: ChatCompletionMessageParam[] = [
            { role: pick(random, ['system', 'developer']), content: words(random, 9) },
            {
              role: 'user',
              content: [
                { type: 'text', text: words(random, 9) },
                { type: 'image_url', image_url: { url: IMAGE } },
              ],
            },
          ];
          for (let turn = 0; turn < TURNS; turn++) {
            const said = someReply(random, turn, NAMES);
            engine.behaviour.reply = () => said;
            const [whole, streamed] = await both({ model: 'alias', messages, tools });
            expect(comparable(streamed)).to.deep.equal(comparable(whole));
            const [choice] = whole.choices;
            expectSaid(choice!.message as unknown as Record<string, unknown>, said);
            expect(whole.model).to.equal('alias');
            messages.push(choice!.message as ChatCompletionMessageParam);
            for (const { id } of choice!.message.tool_calls ?? []) {
              messages.push({ role: 'tool', tool_call_id: id, content: words(random, 9) });
            }
            messages.push({ role: 'user', content: words(random, 9) });
          }
        }
      });

      /** The message tells what the engine said, arguments letter by letter. */
      function expectSaid(message: Record<string, unknown>, said: WireReply): void {
        expect(message['content'] ?? '').to.equal(said.content ?? '');
        expect(message['reasoning_content'] ?? '').to.equal(said.reasoning ?? '');
        const calls = (message['tool_calls'] ?? []) as ChatCompletion.Choice['message']['tool_calls'];
        expect(calls?.length ?? 0).to.equal(said.toolCalls?.length ?? 0);
        for (const [i, call] of (calls ?? []).entries()) {
          const expected = said.toolCalls?.[i];
          expect(call.id).to.equal(expected?.id);
          if (call.type === 'function') expect(call.function.arguments).to.equal(expected?.arguments);
          else expect(JSON.stringify({ input: call.custom.input })).to.equal(expected?.arguments);
        }
      }

      it('gives n replies, streamed as whole', async () => {
        engine.behaviour.reply = () => ({ content: 'one of several', reasoning: 'why' });
        const body = { model: 'alias', n: 3, messages: [{ role: 'user' as const, content: 'x' }] };
        const [whole, streamed] = await both(body);
        expect(whole.choices.map(({ index }) => index)).to.deep.equal([0, 1, 2]);
        expect(comparable(streamed)).to.deep.equal(comparable(whole));
      });

      it('answers functions in their own, older form', async () => {
        engine.behaviour.reply = () => ({
          toolCalls: [{ id: 'c1', name: 'read', arguments: '{ "path": 1}' }],
        });
        const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: 'x' }];
        const body = { model: 'alias', messages, functions: [{ name: 'read', parameters: PATH }] };
        const [whole, streamed] = await both(body);
        expect(comparable(streamed)).to.deep.equal(comparable(whole));
        const [choice] = whole.choices;
        expect(choice).to.include({ finish_reason: 'function_call' });
        expect(choice?.message.function_call).to.deep.equal({ name: 'read', arguments: '{ "path": 1}' });
        messages.push(choice!.message as ChatCompletionMessageParam, {
          role: 'function',
          name: 'read',
          content: 'y',
        });
        await client.chat.completions.create(body);
        const [, call, answer] = engine.bodies.at(-1)!.messages as unknown as Record<string, unknown>[];
        expect(call).to.have.nested.property('tool_calls[0].function.arguments', '{ "path": 1}');
        expect(answer).to.include({ role: 'tool', content: 'y' });
      });

      it('fails where the engine breaks off, and never ends well', async () => {
        engine.behaviour.reply = () => ({ content: 'half of what was to be said' });
        engine.behaviour.cutAfter = 3;
        // What was said before is on its way by then.
        engine.behaviour.delayMs = 20;
        const stream = client.chat.completions.stream({
          model: 'alias',
          messages: [{ role: 'user', content: 'x' }],
        });
        const failure = await stream.finalChatCompletion().then(
          () => undefined,
          (error: unknown) => error,
        );
        expect(failure).to.be.instanceOf(Error);
      });
    });

    describe('responses', () => {
      const tools: Tool[] = [
        { type: 'function', name: 'read', description: 'Read.', parameters: PATH, strict: false },
        {
          type: 'namespace',
          name: 'files',
          description: 'Files.',
          tools: [{ type: 'function', name: 'list', parameters: PATH }],
        },
        { type: 'custom', name: 'patch', description: 'Free text.', format: { type: 'text' } },
      ];
      const names = { functions: ['read', 'files__list'], custom: ['patch'] };

      async function both(body: OpenAI.Responses.ResponseCreateParams): Promise<[Response, Response]> {
        const whole = await client.responses.create({ ...body, stream: false });
        const stream = client.responses.stream({ ...body, stream: true });
        const numbers: number[] = [];
        stream.on('event', (event) => numbers.push((event as { sequence_number: number }).sequence_number));
        const streamed = await stream.finalResponse();
        expect(numbers).to.deep.equal(numbers.map((_, i) => i));
        return [plain(whole), plain(streamed as Response)];
      }

      /** Without what the client adds of itself. */
      function plain({ output_text: text, ...response }: Response): Response {
        const own = ['parsed', 'parsed_arguments', 'output_parsed'];
        const told = JSON.stringify(response, (key, value) => (own.includes(key) ? undefined : value));
        return { ...(JSON.parse(told) as Response), output_text: text };
      }

      /** With the ids of any reply: two of the same words have others. */
      const anonymous = (response: Response): unknown =>
        JSON.parse(JSON.stringify(response).replaceAll(response.id.replace('resp_', ''), 'reply'));

      for (const summary of [null, 'auto'] as const) {
        it(`puts a stream together to what it gets whole, with ${summary ?? 'no'} summary`, async () => {
          const random = chance(summary === null ? 9 : 10);
          for (let n = 0; n < CONVERSATIONS; n++) {
            const input: ResponseInputItem[] = [
              { role: 'developer', content: words(random, 9) },
              {
                role: 'user',
                content: [
                  { type: 'input_text', text: words(random, 9) },
                  { type: 'input_image', detail: 'auto', image_url: IMAGE },
                ],
              },
            ];
            for (let turn = 0; turn < TURNS; turn++) {
              const said = someReply(random, turn, names);
              engine.behaviour.reply = () => said;
              const [whole, streamed] = await both({
                model: 'alias',
                instructions: 'Be brief.',
                input,
                tools,
                store: false,
                include: summary === null ? [] : ['reasoning.encrypted_content'],
                reasoning: { effort: 'low', summary },
              });
              expect(anonymous(streamed)).to.deep.equal(anonymous(whole));
              expect(whole.status).to.equal(said.finish === 'length' ? 'incomplete' : 'completed');
              expect(whole.usage?.input_tokens_details.cached_tokens).to.equal(3);
              input.push(...(whole.output as ResponseInputItem[]));
              for (const item of whole.output) {
                if (item.type === 'function_call') {
                  input.push({
                    type: 'function_call_output',
                    call_id: item.call_id,
                    output: words(random, 9),
                  });
                } else if (item.type === 'custom_tool_call') {
                  input.push({ type: 'custom_tool_call_output', call_id: item.call_id, output: 'done' });
                }
              }
              input.push({ role: 'user', content: words(random, 9) });
              await client.responses.create({
                model: 'alias',
                instructions: 'Be brief.',
                input,
                tools,
                reasoning: { summary },
              });
              expectReplayed(said);
            }
          }
        });
      }

      it('throws where the engine breaks off, so that no half of a reply is taken for the whole', async () => {
        engine.behaviour.reply = () => ({ content: 'half of what was to be said' });
        engine.behaviour.cutAfter = 3;
        // What was said before is on its way by then.
        engine.behaviour.delayMs = 20;
        const events = await client.responses.create({ model: 'alias', input: 'x', stream: true });
        const types: string[] = [];
        const read = async (): Promise<void> => {
          for await (const { type } of events) types.push(type);
        };
        const error = await read().then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        expect(types).to.include('response.output_text.delta');
        expect(error).to.be.instanceOf(OpenAI.APIError).with.property('code', 'server_error');
        expect((error as Error).message).to.include('broke off a stream');
      });

      /** The last assistant message that the engine got is what it said, arguments letter by letter. */
      function expectReplayed(said: WireReply): void {
        const silent = [said.content, said.reasoning].every((text) => (text ?? '') === '') && !said.toolCalls;
        if (silent) return;
        const messages = engine.bodies.at(-1)!.messages as unknown as Record<string, unknown>[];
        const last = messages.findLast(({ role }) => role === 'assistant')!;
        expect(last['content'] ?? '').to.equal(said.content ?? '');
        expect(last['reasoning_content'] ?? '').to.equal(said.reasoning ?? '');
        const calls = (last['tool_calls'] ?? []) as {
          id: string;
          function: { name: string; arguments: string };
        }[];
        const flat = calls.map(({ id, function: called }) => ({ id, ...called }));
        expect(flat).to.deep.equal(said.toolCalls ?? []);
      }
    });
  });
}
