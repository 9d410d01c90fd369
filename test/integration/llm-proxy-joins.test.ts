// A request that joins a reply in flight, through the providers' own clients: what they make of it is what the first one's
// client does, with reasoning and parallel tool calls, wherever it joins. In text mode before both engines.
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { expect } from 'chai';
import OpenAI from 'openai';
import { sleep } from '../../services/common/clock.ts';
import { TestProxy } from '../support/llm-proxy.ts';
import { plainBehaviour, WireEngine, type WireReply } from '../support/wire-engine.ts';

/** Between the pieces of a reply. */
const PIECE_MS = 8;
/** Later ones; each joins so much behind the one before it. */
const [JOINERS, JOIN_MS] = [12, 30];
const PATH = { type: 'object' as const, properties: { path: { type: 'string' } } };
const NAMES = ['read', 'list'];
const called = (id: string, name: string, path: string) => ({
  id,
  name,
  arguments: JSON.stringify({ path }),
});
const REPLY: WireReply = {
  reasoning: 'first I think',
  content: 'then I say it',
  toolCalls: [called('call_a', 'read', 'a/b'), called('call_b', 'list', 'c')],
};
const user = [{ role: 'user' as const, content: 'x' }];

/** The reply as a client has it at the end of a stream; each call asks anew, with the same bytes. */
type Ask = () => Promise<unknown>;

function chatOf(base: string): Ask {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'unused', maxRetries: 0 });
  const tools = NAMES.map((name) => ({ type: 'function' as const, function: { name, parameters: PATH } }));
  return async () => {
    const stream = client.chat.completions.stream({ model: 'm', messages: user, tools, logprobs: true });
    let thought = '';
    let logprobs = 0;
    stream.on('chunk', ({ choices: [choice] }) => {
      thought += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? '';
      logprobs += choice?.logprobs?.content?.length ?? 0;
    });
    const [choice] = (await stream.finalChatCompletion()).choices;
    const { content, tool_calls: calls } = choice!.message;
    return { thought, logprobs, content, calls, finish: choice!.finish_reason };
  };
}

function responsesOf(base: string): Ask {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: 'unused', maxRetries: 0 });
  const tools = NAMES.map((name) => ({
    type: 'function' as const,
    name,
    parameters: PATH,
    strict: false,
  }));
  const reasoning = { summary: 'auto' as const };
  return async () => {
    const stream = client.responses.stream({ model: 'm', input: 'x', tools, reasoning });
    const numbers: number[] = [];
    stream.on('event', (event) => numbers.push((event as { sequence_number: number }).sequence_number));
    const { output } = await stream.finalResponse();
    expect(numbers).to.deep.equal(numbers.map((_, i) => i));
    const own = ['id', 'parsed', 'parsed_arguments'];
    return JSON.parse(JSON.stringify(output, (key, value) => (own.includes(key) ? undefined : value)));
  };
}

function messagesOf(base: string): Ask {
  const client = new Anthropic({ baseURL: base, apiKey: 'unused', maxRetries: 0 });
  const tools = NAMES.map((name) => ({ name, input_schema: PATH }));
  const thinking = { type: 'adaptive' as const, display: 'summarized' as const };
  return async () => {
    const body = { model: 'm', max_tokens: 1_000, messages: user, tools, thinking };
    const { content, stop_reason } = await client.messages.stream(body).finalMessage();
    return { content, stop_reason };
  };
}

function contentOf(base: string): Ask {
  const client = new GoogleGenAI({ apiKey: 'unused', httpOptions: { baseUrl: base } });
  const functionDeclarations = NAMES.map((name) => ({ name, parametersJsonSchema: PATH }));
  const config = { tools: [{ functionDeclarations }], thinkingConfig: { includeThoughts: true } };
  return async () => {
    const said = { thought: '', text: '', calls: [] as unknown[], finish: '' };
    const stream = await client.models.generateContentStream({ model: 'm', contents: 'x', config });
    for await (const { candidates } of stream) {
      for (const { text = '', thought, functionCall } of candidates?.[0]?.content?.parts ?? []) {
        said[thought === true ? 'thought' : 'text'] += text;
        if (functionCall !== undefined) said.calls.push(functionCall);
      }
      said.finish = candidates?.[0]?.finishReason ?? said.finish;
    }
    return said;
  };
}

const CLIENTS: Readonly<Record<string, (base: string) => Ask>> = {
  'openai-chat': chatOf,
  'openai-responses': responsesOf,
  'anthropic-messages': messagesOf,
  'google-generate': contentOf,
};

for (const kind of ['vllm', 'sglang'] as const) {
  describe(`a request that joins a reply in flight, before ${kind}`, () => {
    let engine: WireEngine;
    let proxy: TestProxy;
    before(async () => {
      engine = await WireEngine.start(kind);
      proxy = await TestProxy.start({ engineUrl: engine.url, kind });
      engine.behaviour = { ...plainBehaviour(), reply: () => REPLY, delayMs: PIECE_MS };
    });
    after(async () => {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    for (const [dialect, clientOf] of Object.entries(CLIENTS)) {
      it(`is told the same as the first one: ${dialect}`, async () => {
        const session = `joins-${dialect}`;
        const ask = clientOf(`${proxy.url}/s/${await proxy.admit(session)}`);
        const before = engine.bodies.length;
        const asked = [ask()];
        for (let i = 0; i < JOINERS; i++) {
          await sleep(JOIN_MS);
          asked.push(ask());
        }
        const [first, ...later] = await Promise.all(asked);
        expect(JSON.stringify(first)).to.include('then I say it').and.include('first I think');
        for (const one of later) expect(one).to.deep.equal(first);
        // Those that came too late for the first generation shared another.
        expect(engine.bodies.length - before).to.be.below(JOINERS);
        expect(await proxy.records(session)).to.have.length(engine.bodies.length - before);
      });
    }
  });
}
