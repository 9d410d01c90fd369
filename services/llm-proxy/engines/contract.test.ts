// Engines that break their contract: each breach is a typed failure, or what can be used is used.
import { expect } from 'chai';
import { type RawAnswer, RawEngine, sse } from '../../../test/support/raw-engine.ts';
import { PolarError } from '../../common/errors.ts';
import { ENGINE_FAILURES_MAX, ENGINE_REPLY_BYTES_MAX } from '../../common/limits.ts';
import type { EngineKind } from '../domain/engine-features.ts';
import type { JsonObject } from '../domain/json.ts';
import { idColumn, logprobColumn, sampledOf } from '../domain/tokens.ts';
import { ApiKey } from './api-key.ts';
import { Engine } from './engine.ts';
import { TextCall } from './engine-call.ts';

const CHAT = {
  messages: [{ role: 'user', content: 'x' }],
  tools: [],
  fields: {},
  n: 1,
};
const never = new AbortController().signal;

describe('contract breaches of engines', () => {
  let server: RawEngine;
  const opened: Engine[] = [];
  before(async () => {
    server = await RawEngine.start(() => ({ body: {} }));
  });
  afterEach(() => {
    for (const engine of opened.splice(0)) engine[Symbol.dispose]();
  });
  after(() => server[Symbol.asyncDispose]());

  const callTo = (kind: EngineKind, stream: boolean, answer: RawAnswer, path = ''): TextCall => {
    server.answer = () => answer;
    const engine = new Engine(`${server.url}${path}`, { kind, model: 'm', key: undefined, callsMax: 1 });
    opened.push(engine);
    const order = { sessionId: 's', attempt: 1, pool: '', chat: { ...CHAT, stream }, sampling: undefined };
    return new TextCall(engine, 'm', order);
  };
  const drained = async (call: TextCall): Promise<JsonObject[]> => {
    const chunks: JsonObject[] = [];
    await call.stream({ take: (chunk) => chunks.push(chunk), flush: () => undefined }, never);
    return chunks;
  };
  const failure = async (work: Promise<unknown>): Promise<string> => {
    try {
      await work;
    } catch (error) {
      expect(error).to.be.instanceOf(PolarError);
      const { reason, message } = error as PolarError;
      expect(message).to.not.include('<');
      return reason;
    }
    return 'none';
  };
  const page = '<html><head><title>502 Bad Gateway</title></head><body>NaN</body></html>';
  const choice = { index: 0, message: { role: 'assistant', content: 'ab' }, finish_reason: 'stop' };
  const logprobs = (...values: unknown[]) => ({ content: values.map((logprob) => ({ logprob })) });

  it('is asked where its address says, with or without /v1, and where that has another version', async () => {
    server.requests.length = 0;
    const paths = ['', '/v1/', '/llm', '/llm/v1', '/api/v1', '/v1beta/openai', '/api/paas/v4'];
    for (const path of paths) await failure(callTo('openai', false, { body: {} }, path).whole(never));
    const bases = ['/v1', '/v1', '/llm/v1', '/llm/v1', '/api/v1', '/v1beta/openai', '/api/paas/v4'];
    expect(server.requests.map(({ path }) => path)).to.deep.equal(
      bases.map((base) => `${base}/chat/completions`),
    );
  });

  it('is not down for a reply that is too large', async () => {
    const call = callTo('sglang', false, { body: ' '.repeat(ENGINE_REPLY_BYTES_MAX + 1) });
    const { health } = call.engine;
    for (let i = 1; i < ENGINE_FAILURES_MAX; i++) health.failed();
    expect(await failure(call.whole(never))).to.equal('ENGINE_ERROR');
    expect(health.up).to.equal(true);
  });

  it('is not down for what llama-server refuses as if it had failed', async () => {
    const refusal = (message: string): RawAnswer => ({
      status: 500,
      body: { error: { code: 500, message, type: 'server_error' } },
    });
    const message = 'image input is not supported - hint: you may need to provide the mmproj';
    const refused = callTo('llamacpp', false, refusal(message));
    for (let i = 0; i < ENGINE_FAILURES_MAX; i++)
      expect(await failure(refused.whole(never))).to.equal('ENGINE_REFUSED');
    expect(refused.engine.health.up).to.equal(true);
    const failed = callTo('llamacpp', false, refusal('no slot'));
    expect(await failure(failed.whole(never))).to.equal('ENGINE_UNAVAILABLE');
  });

  const WHOLE: [string, RawAnswer, string][] = [
    ['an HTML page with 200', { type: 'text/html', body: page }, 'ENGINE_ERROR'],
    ['an HTML page with 502', { status: 502, type: 'text/html', body: page }, 'ENGINE_UNAVAILABLE'],
    ['an HTML page with 404', { status: 404, type: 'text/html', body: page }, 'ENGINE_ERROR'],
    ['a list', { body: [] }, 'ENGINE_ERROR'],
    ['half a body', { body: '{"choices":[', cut: true }, 'ENGINE_UNAVAILABLE'],
    ['half a JSON', { body: '{"choices":[' }, 'ENGINE_ERROR'],
    ['nothing', { body: '' }, 'ENGINE_ERROR'],
    ['nothing with 204', { status: 204, body: '' }, 'ENGINE_ERROR'],
  ];
  for (const [what, answer, reason] of WHOLE) {
    it(`${what} for a whole reply: ${reason}`, async () => {
      const call = callTo('vllm', false, answer);
      expect(await failure(call.whole(never))).to.equal(reason);
    });
  }

  const event = 'text/event-stream';
  const delta = { choices: [{ index: 0, delta: { content: 'a' } }] };
  const STREAM: [string, RawAnswer, string][] = [
    ['an HTML page', { type: 'text/html', body: page }, 'ENGINE_ERROR'],
    ['a whole reply', { body: { choices: [choice] } }, 'ENGINE_ERROR'],
    ['an error with 200', { body: { error: { message: 'no' } } }, 'ENGINE_ERROR'],
    ['an end without [DONE]', { type: event, body: sse(delta) }, 'ENGINE_STREAM_CUT'],
    ['a cut', { type: event, body: sse(delta), cut: true }, 'ENGINE_STREAM_CUT'],
    [
      'a cut inside an event',
      { type: event, body: `${sse(delta)}data: {"ch`, cut: true },
      'ENGINE_STREAM_CUT',
    ],
    ['an event that is no JSON', { type: event, body: sse(delta, '{"choices":') }, 'ENGINE_ERROR'],
    ['an event that is HTML', { type: event, body: sse(delta, page) }, 'ENGINE_ERROR'],
    [
      'an error event',
      { type: event, body: sse(delta, { error: { message: 'm', code: 500 } }) },
      'ENGINE_UNAVAILABLE',
    ],
  ];
  for (const [what, answer, reason] of STREAM) {
    it(`${what} for a stream: ${reason}`, async () => {
      expect(await failure(drained(callTo('vllm', true, answer)))).to.equal(reason);
    });
  }

  it('numbers that are none are holes, and the rest is used', async () => {
    const body = `{"choices":[{"index":0,"message":{"content":"NaN ab"},"finish_reason":"stop","token_ids":[1,2,3,4],
      "logprobs":{"content":[{"logprob":NaN},{"logprob":-0.5},{"logprob":0.25},{"logprob":-Infinity}]}}],
      "prompt_token_ids":[7]}`;
    const call = callTo('vllm', false, { body });
    const reply = await call.whole(never);
    expect((reply['choices'] as JsonObject[])[0]?.['message']).to.deep.equal({ content: 'NaN ab' });
    const { ids, logprobs: told } = sampledOf(call.tokens, 0);
    expect([...(ids ?? [])]).to.deep.equal([1, 2, 3, 4]);
    expect(told).to.deep.equal([Number.NaN, -0.5, Number.NaN, Number.NaN]);
  });

  it('logprobs that are not as many as ids are paired with none', async () => {
    const body = { choices: [{ ...choice, token_ids: [1, 2, 3], logprobs: logprobs(-1, -2) }] };
    const call = callTo('vllm', false, { body });
    await call.whole(never);
    expect([...idColumn(sampledOf(call.tokens, 0))]).to.deep.equal([1, 2, 3]);
    expect(logprobColumn(sampledOf(call.tokens, 0))).to.equal(undefined);
  });

  it('ids that are none count as not told', async () => {
    for (const ids of [[1.5], ['1'], [null], 'ids', { 0: 1 }, [2 ** 40]]) {
      const answer = { body: { choices: [{ ...choice, token_ids: ids }], prompt_token_ids: ids } };
      const call = callTo('vllm', false, answer);
      await call.whole(never);
      expect(sampledOf(call.tokens, 0).ids, JSON.stringify(ids)).to.equal(undefined);
      expect(call.tokens.promptIds).to.equal(undefined);
    }
  });

  it('choices and messages of any form break nothing', async () => {
    const forms = [
      {},
      { choices: null },
      { choices: [null, 3, []] },
      { choices: [{ message: {}, delta: 'x', logprobs: 1 }] },
    ];
    for (const body of forms) {
      for (const kind of ['vllm', 'sglang', 'llamacpp', 'openai'] as const) {
        const call = callTo(kind, false, { body });
        await call.whole(never);
        expect(idColumn(sampledOf(call.tokens, 0))).to.have.length(0);
      }
      await drained(callTo('vllm', true, { type: event, body: sse(body, '[DONE]') }));
    }
  });

  const wrong: [string, object, string, RegExp][] = [
    ['a message that is none', { choices: [{ message: 'x' }] }, 'ENGINE_ERROR', /without a message/],
    [
      'a call that is none',
      { choices: [{ message: { tool_calls: [{}] } }] },
      'ENGINE_ERROR',
      /without a name/,
    ],
    ['content that is no text', { choices: [{ message: { content: 5 } }] }, 'ENGINE_ERROR', /no text/],
    ['an error in place of a reply', { error: 'boom' }, 'ENGINE_ERROR', /: boom/],
    ['an error object', { object: 'error', message: 'boom', code: 503 }, 'ENGINE_UNAVAILABLE', /503: boom/],
    ['a refusal', { error: { type: 'invalid_request_error', message: 'boom' } }, 'ENGINE_REFUSED', /^boom/],
  ];
  for (const [what, body, reason, words] of wrong) {
    it(`${what}, with 200: ${reason}`, async () => {
      const error = await callTo('vllm', false, { body })
        .whole(never)
        .catch((caught) => caught);
      expect(error).to.include({ reason });
      expect(error.message).to.match(words);
    });
  }

  for (const [what, body, reason, words] of wrong.filter(([, body]) => !('choices' in body))) {
    it(`${what}, with 200 where a stream was asked for: ${reason}`, async () => {
      const error = await drained(callTo('vllm', true, { body })).catch((caught) => caught);
      expect(error).to.include({ reason });
      expect(error.message).to.match(words);
    });
  }

  it('an event that says error in another form is one', async () => {
    const broken = [{ object: 'error', message: 'boom' }, { error: 'boom' }];
    for (const one of broken) {
      const call = callTo('vllm', true, { type: event, body: sse(one, '[DONE]') });
      expect(await failure(drained(call)), JSON.stringify(one)).to.equal('ENGINE_UNAVAILABLE');
    }
    const refused = { error: { type: 'BadRequestError', message: 'boom' } };
    const call = callTo('vllm', true, { type: event, body: sse(refused, '[DONE]') });
    expect(await failure(drained(call))).to.equal('ENGINE_REFUSED');
  });

  it('a stream of any spelling that a client of events reads is read', async () => {
    const chunk = { id: 'c', choices: [{ index: 0, delta: { content: 'ab' } }] };
    const text = sse(chunk, chunk, '[DONE]');
    const forms = [
      `\ufeff${text}`,
      text.replaceAll('\n', '\r\n'),
      text.replaceAll('data: {', 'data: {\ndata:'),
      text.replaceAll('data:', ': comment\nid: 4\nretry: 5\nevent: message\ndata:'),
      text.trimEnd(),
      text + sse('[DONE]'),
    ];
    for (const body of forms) {
      const chunks = await drained(callTo('vllm', true, { type: 'Text/Event-Stream; charset=UTF-8', body }));
      expect(JSON.parse(JSON.stringify(chunks)), body).to.deep.equal([chunk, chunk]);
    }
  });

  it('an answer that is packed unasked says so', async () => {
    for (const stream of [false, true]) {
      const call = callTo('vllm', stream, { body: '{}', type: event, coding: 'gzip' });
      const error = await (stream ? drained(call) : call.whole(never)).catch((caught) => caught);
      expect(error.message).to.include('packed (gzip) unasked');
    }
    expect(server.requests.at(-1)?.headers).to.include({ 'accept-encoding': 'identity' });
  });

  it('an answer that repeats the key is told without it', async () => {
    const key = 'sk-0123456789';
    for (const [status, reason] of [
      [401, 'ENGINE_ERROR'],
      [400, 'ENGINE_REFUSED'],
      [500, 'ENGINE_UNAVAILABLE'],
    ] as const) {
      const message = `Incorrect API key provided: ${status === 401 ? 'sk-0*****6789' : key}`;
      server.answer = () => ({ status, body: { error: { message } } });
      const engine = new Engine(server.url, {
        kind: 'openai',
        model: 'm',
        key: new ApiKey(key),
        callsMax: 1,
      });
      opened.push(engine);
      const error = await engine.whole({}, never, false).catch((caught) => caught);
      expect(error).to.include({ reason });
      expect(error.message).to.not.match(/sk-0/);
      server.answer = () => ({ body: { error: { message, code: status } } });
      const to = { take: () => {}, flush: () => undefined };
      const streamed = await engine.stream({}, to, never).catch((caught) => caught);
      expect(streamed).to.include({ reason });
      expect(streamed.message).to.not.match(/sk-0/);
      expect(server.requests.at(-1)?.headers.authorization).to.equal(`Bearer ${key}`);
      expect(`${JSON.stringify(engine)}${String(engine)}`).to.not.include(key);
    }
  });

  it('an engine is down after failures one after another, and up with its next answer', async () => {
    const call = callTo('vllm', false, { status: 500, body: {} });
    const { health } = call.engine;
    await failure(call.whole(never));
    expect(health.up).to.equal(true);
    await failure(call.whole(never));
    expect(health.up).to.equal(false);
    // It is there, it only has much to do.
    server.answer = () => ({ status: 429, body: {} });
    expect(await failure(call.whole(never))).to.equal('ENGINE_UNAVAILABLE');
    expect(health.up).to.equal(true);
  });
});
