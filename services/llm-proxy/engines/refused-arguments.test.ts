// Engines that refuse a history for the arguments of a call in it, as the model has written them.
import { expect } from 'chai';
import { RawEngine, sse } from '../../../test/support/raw-engine.ts';
import { PolarError } from '../../common/errors.ts';
import type { EngineKind } from '../domain/engine-features.ts';
import { arrayOf, isObject, type JsonObject, objectOf } from '../domain/json.ts';
import { Engine } from './engine.ts';
import { TextCall } from './engine-call.ts';

const calls = (...texts: string[]): JsonObject => ({
  role: 'assistant',
  content: null,
  tool_calls: texts.map((text, i) => ({
    id: `${i}`,
    type: 'function',
    function: { name: 'f', arguments: text },
  })),
});
const argumentsIn = (body: JsonObject): unknown[] =>
  arrayOf(body['messages'])
    .flatMap((message) => arrayOf(objectOf(message)['tool_calls']))
    .map((call) => objectOf(objectOf(call)['function'])['arguments']);
const isWhole = (text: unknown): boolean => {
  try {
    return isObject(JSON.parse(String(text)));
  } catch {
    return false;
  }
};

/** What SGLang 0.5.23 and llama-server say. */
const REFUSALS = {
  sglang: { status: 400, body: { message: 'Assistant tool call function.arguments must be valid JSON.' } },
  llamacpp: { status: 500, body: { error: { message: 'Failed to parse tool call arguments as JSON: no' } } },
};

describe('arguments in a history that an engine refuses', () => {
  let server: RawEngine;
  const opened: Engine[] = [];
  before(async () => {
    server = await RawEngine.start(() => ({ body: {} }));
  });
  afterEach(() => {
    for (const engine of opened.splice(0)) engine[Symbol.dispose]();
  });
  after(() => server[Symbol.asyncDispose]());

  const callTo = (kind: EngineKind, stream: boolean, messages: JsonObject[]): TextCall => {
    const engine = new Engine(server.url, { kind, model: 'm', key: undefined, callsMax: 1 });
    opened.push(engine);
    const chat = { messages, tools: [], fields: {}, n: 1, stream };
    return new TextCall(engine, 'm', { sessionId: 's', attempt: 1, pool: '', chat, sampling: undefined });
  };
  const never = new AbortController().signal;

  for (const kind of ['sglang', 'llamacpp'] as const) {
    it(`are none in the next try at ${kind}, the others as they were`, async () => {
      const choice = { index: 0, message: { content: 'done' }, finish_reason: 'stop' };
      server.answer = ({ body }) =>
        argumentsIn(body).every(isWhole) ? { body: { choices: [choice] } } : REFUSALS[kind];
      const call = callTo(kind, false, [calls('{"a": ', '{ "a":1}'), calls('[1]'), calls('')]);
      expect(await call.whole(never)).to.have.nested.property('choices[0].message.content', 'done');
      expect(argumentsIn(server.requests.at(-1)!.body)).to.deep.equal(['{}', '{ "a":1}', '{}', '{}']);
      expect(call.engine.health.up).to.equal(true);
    });
  }

  it('are none in a stream too', async () => {
    const delta = { choices: [{ index: 0, delta: { content: 'done' }, finish_reason: 'stop' }] };
    server.answer = ({ body }) =>
      argumentsIn(body).every(isWhole)
        ? { type: 'text/event-stream', body: sse(delta, '[DONE]') }
        : REFUSALS.sglang;
    const chunks: JsonObject[] = [];
    const to = { take: (chunk: JsonObject) => void chunks.push(chunk), flush: () => undefined };
    await callTo('sglang', true, [calls('{')]).stream(to, never);
    expect(chunks).to.have.length(1);
  });

  it('go once to an engine that takes them, and refuse a call that has none', async () => {
    server.answer = () => ({ body: { choices: [] } });
    const before = server.requests.length;
    await callTo('vllm', false, [calls('{')]).whole(never);
    server.answer = () => REFUSALS.sglang;
    const refused = await callTo('sglang', false, [calls('{}')])
      .whole(never)
      .catch((error) => error);
    expect(refused).to.be.instanceOf(PolarError).and.to.include({ reason: 'ENGINE_REFUSED' });
    expect(server.requests.slice(before).map(({ body }) => argumentsIn(body))).to.deep.equal([['{'], ['{}']]);
  });
});
