// Google's own client in front of the llm-proxy: the pieces of a stream make what it gets whole, in generated
// conversations, and what it sends back is what the engine said.
import {
  type Content,
  type GenerateContentConfig,
  type GenerateContentResponse,
  GoogleGenAI,
  type Part,
} from '@google/genai';
import { expect } from 'chai';
import { digestMessage } from '../../services/llm-proxy/domain/messages.ts';
import { chance, PIXEL, someReply, words } from '../support/generated.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { messageOf, plainBehaviour, promptIds, WireEngine, type WireReply } from '../support/wire-engine.ts';

const TURNS = 4;
const CONVERSATIONS = 12;
const PATH = { type: 'object', properties: { path: { type: 'string' } } };
const NAMES = { functions: ['read', 'list'] };
const TOOLS = [
  {
    functionDeclarations: [
      { name: 'read', description: 'Read.', parametersJsonSchema: PATH },
      { name: 'list', parametersJsonSchema: PATH },
    ],
  },
];

for (const kind of ['vllm', 'sglang'] as const) {
  describe(`google SDK through the llm-proxy before ${kind}`, () => {
    let engine: WireEngine;
    let proxy: TestProxy;
    let baseUrl: string;
    let client: GoogleGenAI;
    before(async () => {
      engine = await WireEngine.start(kind);
      proxy = await TestProxy.start({ engineUrl: engine.url, kind });
      baseUrl = `${proxy.url}/s/${await proxy.admit('sdk-google')}`;
      client = new GoogleGenAI({ apiKey: 'unused', httpOptions: { baseUrl } });
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
      contents: Content[],
      config: GenerateContentConfig,
    ): Promise<{ whole: Told; streamed: Told }> {
      const whole = await client.models.generateContent({ model: 'alias', contents, config });
      const pieces: GenerateContentResponse[] = [];
      const stream = await client.models.generateContentStream({ model: 'alias', contents, config });
      for await (const piece of stream) pieces.push(piece);
      return { whole: toldBy([whole]), streamed: toldBy(pieces) };
    }

    for (const includeThoughts of [true, false]) {
      it(`makes of the pieces what it gets whole, ${includeThoughts ? 'with' : 'without'} thoughts`, async () => {
        const random = chance(includeThoughts ? 5 : 6);
        for (let n = 0; n < CONVERSATIONS; n++) {
          const image = { inlineData: { mimeType: 'image/png', data: PIXEL } };
          const contents: Content[] = [{ role: 'user', parts: [{ text: words(random, 9) }, image] }];
          for (let turn = 0; turn < TURNS; turn++) {
            const said = someReply(random, turn, NAMES);
            engine.behaviour.reply = () => said;
            const config = {
              systemInstruction: 'Be brief.',
              tools: TOOLS,
              thinkingConfig: { includeThoughts },
            };
            const { whole, streamed } = await both(contents, config);
            expect(streamed).to.deep.equal(whole);
            const [candidate] = whole.candidates;
            expect(candidate?.finishReason).to.equal(said.finish === 'length' ? 'MAX_TOKENS' : 'STOP');
            expect(whole.usage?.cachedContentTokenCount).to.equal(3);
            const parts = candidate?.parts ?? [];
            // An empty content is one that the API does not take.
            const sent = parts.length === 0 ? [{ text: '' }] : parts;
            contents.push({ role: 'model', parts: sent }, answersTo(parts, random));
            await client.models.generateContent({ model: 'alias', contents, config: { tools: TOOLS } });
            expectReplayed(engine, said);
          }
        }
      });
    }

    for (const includeThoughts of [true, false]) {
      it(`is told by the client’s own chats what it said, ${includeThoughts ? 'with' : 'without'} thoughts`, async () => {
        const random = chance(includeThoughts ? 7 : 8);
        for (let n = 0; n < CONVERSATIONS; n++) {
          const config = { tools: TOOLS, thinkingConfig: { includeThoughts } };
          const chat = client.chats.create({ model: 'alias', config });
          const saidSoFar: WireReply[] = [];
          let message: Part[] = [{ text: `q${words(random, 9)}` }];
          for (let turn = 0; turn < TURNS; turn++) {
            const said = someReply(random, turn, NAMES);
            engine.behaviour.reply = () => said;
            for await (const _ of await chat.sendMessageStream({ message }));
            const { messages } = engine.bodies.at(-1)!;
            expect(digestsOf(messages.filter(({ role }) => role === 'assistant'))).to.deep.equal(
              digestsOf(saidSoFar.map(messageOf)),
            );
            saidSoFar.push(said);
            const parts = chat.getHistory().findLast(({ role }) => role === 'model')?.parts ?? [];
            message = answersTo(parts, random).parts ?? [];
          }
        }
      });
    }

    it('gives several candidates, streamed as whole', async () => {
      engine.behaviour.reply = () => ({
        content: 'one of two',
        reasoning: 'why',
        toolCalls: [{ id: 'c', name: 'read', arguments: '{}' }],
      });
      const contents = [{ role: 'user', parts: [{ text: 'x' }] }];
      const { whole, streamed } = await both(contents, { candidateCount: 2, tools: TOOLS });
      expect(streamed).to.deep.equal(whole);
      expect(whole.candidates).to.have.length(2);
      expect(engine.bodies.at(-1)).to.include({ n: 2 });
    });

    it('ends where it was cut or stopped, and fails calls that are no objects', async () => {
      const contents = [{ role: 'user', parts: [{ text: 'x' }] }];
      const made = (args: string, finish?: string): WireReply => ({
        toolCalls: [{ id: 'c', name: 'read', arguments: args }],
        ...(finish !== undefined && { finish }),
      });
      const cases: [WireReply, string][] = [
        [{ content: 'up to', stopped: 'END' }, 'STOP'],
        [{ content: 'half', finish: 'length' }, 'MAX_TOKENS'],
        [made('{"path": "ha', 'length'), 'MAX_TOKENS'],
        [made('{"path": "ha'), 'MALFORMED_FUNCTION_CALL'],
        [{ content: '' }, 'STOP'],
      ];
      for (const [said, finishReason] of cases) {
        engine.behaviour.reply = () => said;
        const { whole, streamed } = await both(contents, { stopSequences: ['END'], tools: TOOLS });
        expect(streamed).to.deep.equal(whole);
        expect(whole.candidates[0]).to.include({ finishReason });
      }
    });

    it('streams one JSON array where no events are asked for', async () => {
      engine.behaviour.reply = () => ({ content: 'in pieces', reasoning: 'why' });
      const body = { contents: [{ parts: [{ text: 'x' }] }] };
      const call = (method: string): Promise<Response> =>
        fetch(`${baseUrl}/v1beta/models/alias:${method}`, { method: 'POST', body: JSON.stringify(body) });
      const pieces = (await (await call('streamGenerateContent')).json()) as GenerateContentResponse[];
      const whole = (await (await call('generateContent')).json()) as GenerateContentResponse;
      expect(toldBy(pieces)).to.deep.equal(toldBy([whole]));
      Object.assign(engine.behaviour, { cutAfter: 3, delayMs: 10 });
      const broken = (await (await call('streamGenerateContent')).json()) as object[];
      expect(broken.at(-1)).to.have.nested.property('error.status', 'UNAVAILABLE');
    });

    it('has errors that the client knows, before a stream and within it', async () => {
      const ask = (config: GenerateContentConfig = {}) => ({ model: 'alias', contents: 'x', config });
      const refused = await failureOf(client.models.generateContent(ask({ tools: [{ googleSearch: {} }] })));
      expect(refused)
        .to.include({ status: 400 })
        .and.have.property('message')
        .that.matches(/googleSearch/);
      engine.behaviour = {
        ...plainBehaviour(),
        cutAfter: 3,
        delayMs: 10,
        reply: () => ({ content: 'several pieces' }),
      };
      const stream = await client.models.generateContentStream(ask());
      const broken = await failureOf(
        (async () => {
          for await (const _ of stream);
        })(),
      );
      expect(broken).to.include({ status: 502 });
    });

    it('counts the tokens of a prompt', async () => {
      const counted = await client.models.countTokens({ model: 'alias', contents: 'hello' });
      expect(counted.totalTokens).to.equal(promptIds([{ role: 'user', content: 'hello' }]).length);
    });

    it('lists models and finds one', async () => {
      const names: (string | undefined)[] = [];
      for await (const { name } of await client.models.list()) names.push(name);
      expect(names).to.deep.equal(['models/policy']);
      expect(await client.models.get({ model: 'policy' })).to.include({ name: 'models/policy' });
    });
  });
}

interface Told {
  candidates: { index: number; parts: Part[]; finishReason: unknown; finishMessage: unknown }[];
  usage: GenerateContentResponse['usageMetadata'];
}

/** What responses say together: pieces of text that follow each other are one. */
function toldBy(responses: readonly GenerateContentResponse[]): Told {
  const candidates: Told['candidates'] = [];
  for (const { candidates: pieces = [] } of responses) {
    for (const { index = 0, content, finishReason, finishMessage } of pieces) {
      candidates[index] ??= { index, parts: [], finishReason: undefined, finishMessage: undefined };
      Object.assign(candidates[index], { finishReason, finishMessage });
      for (const part of content?.parts ?? []) addPart(candidates[index].parts, part);
    }
  }
  return { candidates, usage: responses.at(-1)?.usageMetadata };
}

function addPart(parts: Part[], part: Part): void {
  const last = parts.at(-1);
  const joins = last?.text !== undefined && part.text !== undefined && last.thought === part.thought;
  if (!joins) parts.push({ ...part });
  else Object.assign(last, part, { text: `${last.text}${part.text}` });
}

function answersTo(parts: readonly Part[], random: () => number): Content {
  const responses = parts.flatMap(({ functionCall: call }): Part[] =>
    call === undefined
      ? []
      : [
          {
            functionResponse: {
              ...(call.id !== undefined && { id: call.id }),
              name: call.name ?? '',
              response: { output: words(random, 9) },
            },
          },
        ],
  );
  return { role: 'user', parts: [...responses, { text: words(random, 9) }] };
}

/** The last assistant message that the engine got is what it said, as far as content goes. */
function expectReplayed(engine: WireEngine, said: WireReply): void {
  const last = engine.bodies.at(-1)!.messages.findLast(({ role }) => role === 'assistant');
  expect(digestsOf([last!])).to.deep.equal(digestsOf([messageOf(said)]));
}

const digestsOf = (messages: readonly object[]): string[] =>
  messages.map((message) => digestMessage(JSON.parse(JSON.stringify(message))).digest);

const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
