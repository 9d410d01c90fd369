// What a harness gets, and what is recorded, when an engine breaks its contract.
import { expect } from 'chai';
import { unpackFloats, unpackIds } from '../../services/common/columns.ts';
import { readEvents, TestProxy } from '../support/llm-proxy.ts';
import { type RawAnswer, RawEngine, sse } from '../support/raw-engine.ts';
import { callsShown } from '../support/shown-calls.ts';

type Called = { function: { name: string; arguments: string } };

const MESSAGES = [{ role: 'user', content: 'x' }];
const PAGE = '<html><head><title>Bad Gateway</title></head></html>';
const EVENTS = 'text/event-stream';
/** More values than a function takes. */
const LONG = 200_000;

describe('llm-proxy with an engine that breaks its contract', () => {
  let engine: RawEngine;
  let proxy: TestProxy;
  let sessions = 0;
  before(async () => {
    engine = await RawEngine.start(() => ({ body: {} }));
    proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm', modelServed: 'm' });
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const asked = async (answer: RawAnswer, stream = false) => {
    engine.answer = () => answer;
    const session = `breach-${sessions++}`;
    const capability = await proxy.admit(session);
    const reply = await proxy.chat(capability, { messages: MESSAGES, stream });
    const { events, whole } = stream ? await readEvents(reply.clone()) : { events: [], whole: true };
    const text = stream ? '' : await reply.text();
    const closed = await proxy.client.closeSession({ sessionId: session, attempt: 1 });
    return { status: reply.status, text, events, whole, closed, records: await proxy.records(session) };
  };
  const reply = (more: object, top: object = {}): RawAnswer => ({
    body: JSON.stringify({
      choices: [{ index: 0, message: { role: 'assistant', content: 'ab' }, finish_reason: 'stop', ...more }],
      prompt_token_ids: [7, 8],
      usage: { prompt_tokens: 2, completion_tokens: 3 },
      ...top,
    }).replaceAll('"NaN"', 'NaN'),
  });
  const logprobs = (...values: unknown[]) => ({ content: values.map((logprob) => ({ logprob })) });

  it('gives each reply an id of its own where it has none', async () => {
    const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
      choices: [{ index: 0, delta, finish_reason: finish, token_ids: [1], ...more }],
      prompt_token_ids: [7, 8],
    });
    const parts = ['a', 'b', 'c', 'd'].map((content) => chunk({ content }));
    const stream = { type: EVENTS, body: sse(...parts, chunk({}, 'stop'), '[DONE]') };
    const idIn = (text: string): unknown => (JSON.parse(text) as { id: unknown }).id;
    const ids: unknown[] = [];
    for (let i = 0; i < 2; i++) {
      ids.push(idIn((await asked(reply({ token_ids: [1] }))).text));
      const { events } = await asked(stream, true);
      const [id, ...others] = new Set(events.slice(0, -1).map(idIn));
      expect(others).to.deep.equal([]);
      ids.push(id);
    }
    for (const id of ids) expect(id).to.be.a('string').that.is.not.equal('');
    expect(new Set(ids)).to.have.property('size', ids.length);
  });

  it('uses ids whose logprobs are too few, without logprobs', async () => {
    const { status, records } = await asked(reply({ token_ids: [1, 2, 3], logprobs: logprobs(-1, -2) }));
    expect(status).to.equal(200);
    expect([...unpackIds(records[0]!.sampledIds)]).to.deep.equal([1, 2, 3]);
    expect(records[0]?.logprobs).to.equal(undefined);
  });

  it('takes a stream that comes in one piece, however long it is', async () => {
    const ids = Array<number>(LONG).fill(5);
    const delta = { content: 'x'.repeat(LONG) };
    const choice = {
      index: 0,
      delta,
      token_ids: ids,
      logprobs: { content: ids.map(() => ({ logprob: -1 })) },
    };
    const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
    const chunks = [{ prompt_token_ids: [7], choices: [choice] }, end].map((one) => JSON.stringify(one));
    engine.answer = () => ({ type: EVENTS, body: sse(...chunks, '[DONE]') });
    const capability = await proxy.admit('long');
    const asking = { messages: MESSAGES, stream: true, logprobs: true };
    const { events } = await readEvents(await proxy.chat(capability, asking));
    expect(events.at(-1)).to.equal('[DONE]');
    const [record] = await proxy.records('long');
    expect(record?.finishReason).to.equal('stop');
    expect(unpackFloats(record!.logprobs!)).to.have.length(LONG);
  });

  it('takes NaN for a hole', async () => {
    const broken = reply({ token_ids: [1, 2, 3], logprobs: logprobs(-1, 'NaN', 0.5) });
    const { status, records } = await asked(broken);
    expect(status).to.equal(200);
    expect([...unpackFloats(records[0]!.logprobs!)]).to.deep.equal([-1, Number.NaN, Number.NaN]);
  });

  it('records no usage where there is none, and the engine’s where it differs', async () => {
    const more = { token_ids: [1, 2, 3], logprobs: logprobs(-1, -2, -3) };
    expect((await asked(reply(more, { usage: null }))).records[0]?.usage).to.equal(undefined);
    const differs = await asked(reply(more, { usage: { prompt_tokens: 2, completion_tokens: 9 } }));
    expect(differs.records[0]?.usage).to.include({ promptTokens: 2, completionTokens: 9 });
    expect([...unpackIds(differs.records[0]!.sampledIds)]).to.deep.equal([1, 2, 3]);
  });

  const ids = { token_ids: [1], logprobs: logprobs(-1) };
  const FAILED: [string, RawAnswer, string, RegExp][] = [
    ['a page of HTML', { type: 'text/html', body: PAGE }, 'engine_error', /HTML page, "Bad Gateway"/],
    ['no choices', reply({}, { choices: [] }), 'engine_error', /no choice/],
    ['choices that are none', reply({}, { choices: 'none' }), 'engine_error', /no choice/],
    ['no ids', reply({}), 'engine_no_token_ids', /return_token_ids/],
    ['ids that are none', reply({ token_ids: ['a'] }), 'engine_no_token_ids', /sampled/],
    ['no ids of the prompt', reply(ids, { prompt_token_ids: null }), 'engine_no_token_ids', /prompt/],
    ['a prompt of no ids', reply(ids, { prompt_token_ids: [] }), 'engine_no_token_ids', /prompt/],
  ];
  for (const [what, answer, code, message] of FAILED) {
    it(`answers 502 to ${what}, and records nothing`, async () => {
      const { status, text, records, closed } = await asked(answer);
      expect(status).to.equal(502);
      const { error } = JSON.parse(text);
      expect(error).to.include({ code, type: 'server_error' });
      expect(error.message).to.match(message).and.not.include('<');
      expect(records).to.deep.equal([]);
      expect(closed.lastFailure?.reason).to.equal(code.toUpperCase());
    });
  }

  it('records the replies that have ids where others of the call have none, which is not passed on', async () => {
    const one = { message: { role: 'assistant', content: 'ab' }, finish_reason: 'stop' };
    const choices = [
      { index: 0, ...one, ...ids },
      { index: 1, ...one },
    ];
    engine.answer = () => reply({}, { choices });
    const capability = await proxy.admit('half');
    expect((await proxy.chat(capability, { messages: MESSAGES, n: 2 })).status).to.equal(502);
    const [record, ...others] = await proxy.records('half');
    expect(record).to.include({ choiceIndex: 0, finishReason: 'error', replyDigest: '' });
    expect(record?.errorReason).to.equal('ENGINE_NO_TOKEN_IDS');
    expect([...unpackIds(record!.sampledIds)]).to.deep.equal([1]);
    expect(others).to.deep.equal([]);
  });

  it('passes on no replies of one index, and loses none of the records behind them', async () => {
    const one = { index: 0, message: { role: 'assistant', content: 'ab' }, finish_reason: 'stop', ...ids };
    const capability = await proxy.admit('alike');
    const statuses: number[] = [];
    for (const choices of [[one, one], [one]]) {
      engine.answer = () => reply({}, { choices });
      statuses.push((await proxy.chat(capability, { messages: MESSAGES, n: choices.length })).status);
    }
    expect(statuses).to.deep.equal([502, 200]);
    const records = await proxy.records('alike');
    const told = records.map(({ index, finishReason, errorReason }) => [index, finishReason, errorReason]);
    expect(told).to.deep.equal([
      [0, 'error', 'ENGINE_ERROR'],
      [1, 'stop', ''],
    ]);
  });

  const delta = (content: string, id: number) => ({
    choices: [{ index: 0, delta: { content }, token_ids: [id], logprobs: logprobs(-1), finish_reason: null }],
    prompt_token_ids: [7, 8],
  });
  const end = {
    choices: [{ index: 0, delta: {}, token_ids: [2], logprobs: logprobs(-1), finish_reason: 'stop' }],
  };
  const CUT: [string, RawAnswer, string][] = [
    ['ends without [DONE]', { type: EVENTS, body: sse(delta('a', 5), delta('b', 6)) }, 'ENGINE_STREAM_CUT'],
    ['is cut', { type: EVENTS, body: sse(delta('a', 5), delta('b', 6)), cut: true }, 'ENGINE_STREAM_CUT'],
    [
      'has no finish_reason',
      { type: EVENTS, body: sse(delta('a', 5), delta('b', 6), '[DONE]') },
      'ENGINE_STREAM_CUT',
    ],
    ['has HTML in it', { type: EVENTS, body: sse(delta('a', 5), delta('b', 6), PAGE) }, 'ENGINE_ERROR'],
  ];
  for (const [what, answer, reason] of CUT) {
    it(`never ends a stream that ${what} cleanly, and records what was told`, async () => {
      const { events, whole, records } = await asked(answer, true);
      expect({ whole, done: events.includes('[DONE]') }).to.deep.equal({ whole: false, done: false });
      expect(records[0]).to.include({ finishReason: 'error', errorReason: reason, replyDigest: '' });
      expect([...unpackIds(records[0]!.sampledIds)]).to.deep.equal([5, 6]);
    });
  }

  it('tells calls in any form to every dialect, and records the same', async () => {
    const parts = [
      { id: 'c1', function: { name: '', arguments: null } },
      { id: 'c1', function: { name: 'f', arguments: { a: 1 } } },
      { id: 'c2', function: { name: 'f', arguments: '{"b"' } },
      { id: 'c2', function: { name: 'f', arguments: ':2}' } },
      { id: '', function: { name: 'g', arguments: '{}' } },
    ];
    const chunks = parts.map((call, i) => {
      const [choice] = delta('', i + 5).choices;
      return { ...delta('', i + 5), choices: [{ ...choice, delta: { tool_calls: [call] } }] };
    });
    engine.answer = () => ({ type: EVENTS, body: sse(...chunks, end, '[DONE]') });
    const expected = [
      ['f', '{"a":1}'],
      ['f', '{"b":2}'],
      ['g', '{}'],
    ];
    const tool = { name: 'f', parameters: {} };
    const asks: [string, object][] = [
      ['/v1/chat/completions', { messages: MESSAGES, tools: [{ type: 'function', function: tool }] }],
      ['/v1/responses', { input: 'x', tools: [{ type: 'function', ...tool }] }],
      ['/v1/messages', { messages: MESSAGES, tools: [{ name: 'f', input_schema: {} }] }],
      [
        '/v1beta/models/m:streamGenerateContent?alt=sse',
        { contents: [{ parts: [{ text: 'x' }] }], tools: [{ functionDeclarations: [tool] }] },
      ],
    ];
    for (const [path, body] of asks) {
      const session = `calls-${path.length}`;
      const url = `${proxy.url}/s/${await proxy.admit(session)}${path}`;
      const sent = path.includes(':') ? body : { ...body, stream: true };
      const text = await (await fetch(url, { method: 'POST', body: JSON.stringify(sent) })).text();
      for (const id of ['c1', 'c2']) expect(text, path).to.include(`"${id}"`);
      expect(callsShown(text), path).to.deep.equal(expected);
      const [record] = await proxy.records(session);
      const { tool_calls: calls } = JSON.parse(record?.messageBodies[record.replyDigest] ?? '{}');
      const told = calls.map(({ function: { name, arguments: args } }: Called) => [name, args]);
      expect(told, path).to.deep.equal(expected);
    }
  });

  it('passes on a stream without usage', async () => {
    const { events, whole, records } = await asked(
      { type: EVENTS, body: sse(delta('a', 5), end, '[DONE]') },
      true,
    );
    expect({ whole, last: events.at(-1) }).to.deep.equal({ whole: true, last: '[DONE]' });
    expect(records[0]?.usage).to.equal(undefined);
    expect([...unpackIds(records[0]!.sampledIds)]).to.deep.equal([5, 2]);
  });
});
