// Engines that are found, scheduled, asked with keys, or tell no ids in streams or at all.
import { toJsonString } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { sleep } from '../../services/common/clock.ts';
import { unpackFloats, unpackIds } from '../../services/common/columns.ts';
import { eventually } from '../support/eventually.ts';
import { promptsOf, readEvents, TestProxy } from '../support/llm-proxy.ts';
import { type RawAnswer, RawEngine, type RawRequest, sse } from '../support/raw-engine.ts';
import { messageOf, promptIds, sampledIds, WireEngine } from '../support/wire-engine.ts';

const MESSAGES = [{ role: 'user', content: 'x' }];
const NOT_FOUND: RawAnswer = { status: 404, body: { detail: 'Not Found' } };
const REPLY = { content: 'done' };

/** A reply of an engine without ids. */
const plainReply = ({ path, body }: RawRequest): RawAnswer =>
  path === '/v1/models'
    ? { body: { data: [{ id: 'm' }] } }
    : {
        body: {
          id: 'chatcmpl-1',
          object: 'chat.completion',
          created: 1,
          model: body.model,
          choices: [{ index: 0, message: messageOf(REPLY), finish_reason: 'stop' }],
          usage: { prompt_tokens: 11, completion_tokens: 5, total_tokens: 16 },
        },
      };

/** As llama-server answers. */
const llamaReply = (request: RawRequest): RawAnswer => {
  if (request.path === '/tokenize') return { body: { tokens: promptIds(MESSAGES) } };
  if (request.path === '/v1/models') return plainReply(request);
  const { body } = plainReply(request) as { body: { choices: object[]; usage: object } };
  const ids = sampledIds(REPLY);
  // Without the first one, as where it is only a part of a character.
  const content = ids.slice(1).map((id, i) => ({ id, token: 't', logprob: -(i + 1) / 4, top_logprobs: [] }));
  return {
    body: {
      ...body,
      choices: [{ ...body.choices[0], logprobs: { content } }],
      __verbose: { prompt: 'rendered', tokens: ids, tokens_evaluated: promptIds(MESSAGES).length },
    },
  };
};

const ask = async (proxy: TestProxy, capability: string, more: object = {}): Promise<Response> =>
  await proxy.chat(capability, { messages: MESSAGES, ...more });
const saidIn = (events: readonly string[]): string =>
  events
    .filter((data) => data.startsWith('{'))
    .map((data) => JSON.parse(data).choices[0]?.delta.content ?? '')
    .join('');

describe('llm-proxy and frozen model pools', () => {
  const KEY = 'sk-frozen-0123456789';
  let policy: WireEngine;
  let api: RawEngine;
  let proxy: TestProxy;
  const allowed = { modelPools: ['pool/judge'] };
  before(async () => {
    policy = await WireEngine.start('vllm');
    api = await RawEngine.start(plainReply);
    const judge = { alias: 'pool/judge', base_url: api.url, model: 'big', api_key_env: 'JUDGE_KEY' };
    proxy = await TestProxy.start({
      engineUrl: policy.url,
      kind: 'vllm',
      node: {
        model_pool: [
          { ...judge, max_active_episodes: 1 },
          { ...judge, alias: 'pool/own', engine: 'vllm', base_url: policy.url, api_key_env: undefined },
        ],
      },
      env: { JUDGE_KEY: KEY },
    });
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await policy[Symbol.asyncDispose]();
    await api[Symbol.asyncDispose]();
  });

  it('asks with the key, and records without it, never to be trained', async () => {
    const sampling = { temperature: 0.5 };
    const capability = await proxy.admit('pool-0', 1, { ...allowed, sampling });
    const answer = await ask(proxy, capability, { model: 'pool/judge', temperature: 0 });
    const text = await answer.text();
    expect(JSON.parse(text)).to.deep.include({ model: 'pool/judge' });
    expect(api.at('/v1/chat/completions').at(-1)).to.deep.include({ method: 'POST' });
    const { headers, body } = api.requests.at(-1) as RawRequest;
    expect(headers.authorization).to.equal(`Bearer ${KEY}`);
    // The task's sampling is the policy's.
    expect(body).to.include({ model: 'big', temperature: 0 });
    await ask(proxy, capability);
    const [frozen, own] = await proxy.records('pool-0');
    expect(frozen).to.deep.include({ trainable: false, model: 'big', engine: 'openai', noTokenIds: true });
    expect(frozen?.usage).to.include({ promptTokens: 11, completionTokens: 5 });
    expect(frozen?.sampledIds).to.have.length(0);
    expect(own).to.include({ trainable: true, model: 'served', engine: 'vllm', noTokenIds: false });
    for (const one of [frozen, own]) expect(toJsonString(CompletionSchema, one!)).to.not.include(KEY);
    expect(text).to.not.include(KEY);
    await proxy.client.closeSession({ sessionId: 'pool-0', attempt: 1 });
  });

  it('records the ids of a frozen model that tells them', async () => {
    const capability = await proxy.admit('pool-1', 1, { modelPools: ['pool/own'] });
    expect((await ask(proxy, capability, { model: 'pool/own' })).status).to.equal(200);
    const [record] = await proxy.records('pool-1');
    expect(record).to.include({ trainable: false, noTokenIds: false, logprobMode: 'raw' });
    expect([...unpackIds(record!.sampledIds)]).to.deep.equal(sampledIds({ content: 'hello' }));
  });

  it('offers a pool to those alone whose task allows it', async () => {
    const without = await proxy.admit('pool-2');
    const refused = await ask(proxy, without, { model: 'pool/judge' });
    expect(refused.status).to.equal(404);
    expect(await refused.text()).to.not.include('served');
    const models = async (capability: string): Promise<string[]> => {
      const answer = await fetch(`${proxy.url}/s/${capability}/v1/models`);
      return ((await answer.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
    };
    expect(await models(without)).to.deep.equal(['policy']);
    const unknown = await proxy.admit('pool-3', 1, { modelPools: ['pool/judge', 'pool/gone'] });
    expect(await models(unknown)).to.deep.equal(['policy', 'pool/judge']);
    expect((await ask(proxy, unknown, { model: 'pool/gone' })).status).to.equal(404);
  });

  it('lets as many sessions use it as may, until they end', async () => {
    const [first, second] = [
      await proxy.admit('pool-4', 1, allowed),
      await proxy.admit('pool-5', 1, allowed),
    ];
    const judge = (capability: string): Promise<Response> => ask(proxy, capability, { model: 'pool/judge' });
    expect((await judge(first)).status).to.equal(200);
    const refused = await judge(second);
    expect(refused.status).to.equal(429);
    expect(Number(refused.headers.get('retry-after'))).to.be.greaterThan(0);
    expect((await judge(first)).status).to.equal(200);
    expect((await ask(proxy, second)).status).to.equal(200);
    await proxy.client.closeSession({ sessionId: 'pool-4', attempt: 1 });
    expect((await judge(second)).status).to.equal(200);
    await proxy.revoke('pool-5');
    const third = await proxy.admit('pool-6', 1, allowed);
    await eventually('its place is free', async () => (await judge(third)).status === 200);
  });

  it('tells its engines with their pools and without keys', async () => {
    const { engines } = await proxy.client.listEngines({});
    expect(engines.map(({ pool, kind, model, healthy }) => [pool, kind, model, healthy])).to.deep.equal([
      ['', 'vllm', 'served', true],
      ['pool/judge', 'openai', 'big', true],
      ['pool/own', 'vllm', 'big', true],
    ]);
    expect(engines[1]?.features).to.include({ wholeIds: false, streamedIds: 'never' });
    expect(JSON.stringify(engines, (_, value) => (typeof value === 'bigint' ? 0 : value))).to.not.include(
      KEY,
    );
  });

  it('does not start where a key is missing', async () => {
    const judge = { alias: 'pool/judge', base_url: api.url, api_key_env: 'NOT_SET' };
    const lost = await TestProxy.prepare({
      engineUrl: policy.url,
      kind: 'vllm',
      node: {
        model_pool: [judge, { ...judge, alias: 'pool/b', api_key_env: undefined, api_key_file: '/none' }],
      },
    });
    try {
      const error = await lost.startHere().catch((error) => error);
      expect(error).to.include({ reason: 'INVALID_CONFIG' });
      expect(error.message).to.include('model_pool[0].api_key_env').and.include('model_pool[1].api_key_file');
    } finally {
      await lost[Symbol.asyncDispose]();
    }
  });
});

describe('llm-proxy and engines without ids in streams', () => {
  const withProxy = async (
    engine: { url: string },
    kind: 'sglang' | 'llamacpp' | 'openai',
    inference: object,
    work: (proxy: TestProxy, capability: string) => Promise<void>,
  ): Promise<void> => {
    await using proxy = await TestProxy.start({ engineUrl: engine.url, kind, inference: { ...inference } });
    await work(proxy, await proxy.admit('s'));
  };

  it('makes the stream of a whole reply where a router drops the ids', async () => {
    await using engine = await WireEngine.start('sglang');
    await withProxy(engine, 'sglang', { stream: 'made' }, async (proxy, capability) => {
      const { events, whole } = await readEvents(await ask(proxy, capability, { stream: true }));
      expect(whole).to.equal(true);
      expect(events.at(-1)).to.equal('[DONE]');
      expect(saidIn(events)).to.equal('hello');
      expect(engine.bodies[0]).to.include({ stream: false, return_token_ids: true });
      const [record] = await proxy.records('s');
      expect([...unpackIds(record!.sampledIds)]).to.deep.equal(sampledIds({ content: 'hello' }));
    });
  });

  it('has all ids of llama-server, streamed or not, and logprobs where they are told', async () => {
    await using engine = await RawEngine.start(llamaReply);
    await withProxy(engine, 'llamacpp', {}, async (proxy, capability) => {
      const whole = await ask(proxy, capability, { seed: 1 });
      expect(await whole.text()).to.not.include('__verbose');
      const { events } = await readEvents(await ask(proxy, capability, { stream: true, seed: 2 }));
      expect(saidIn(events)).to.equal('done');
      expect(engine.at('/v1/chat/completions').map(({ body }) => body.stream)).to.deep.equal([false, false]);
      const records = await proxy.records('s');
      expect(promptsOf(records)[0]).to.deep.equal(promptIds(MESSAGES));
      for (const record of records) {
        expect([...unpackIds(record.sampledIds)]).to.deep.equal(sampledIds(REPLY));
        expect([...unpackFloats(record.logprobs!)]).to.deep.equal([Number.NaN, -0.25, -0.5, -0.75, -1]);
      }
      const several = await ask(proxy, capability, { n: 2 });
      expect(several.status).to.equal(400);
      engine.answer = (request) =>
        request.path === '/tokenize' ? { body: { tokens: [1] } } : llamaReply(request);
      const inexact = await ask(proxy, capability, { seed: 3 });
      expect(inexact.status).to.equal(502);
      expect(((await inexact.json()) as { error: { code: string } }).error.code).to.equal(
        'engine_no_token_ids',
      );
    });
  });

  it('asks an engine of kind openai without what it says it does not know, from then on', async () => {
    const refused = (message: string): RawAnswer => ({
      status: 400,
      body: { error: { message, type: 'invalid_request_error' } },
    });
    await using engine = await RawEngine.start((request) => {
      const { chat_template_kwargs: kwargs, top_k, max_tokens, stop } = request.body ?? {};
      if (kwargs !== undefined) return refused("Unknown parameter: 'chat_template_kwargs'.");
      if (top_k !== undefined) return refused('Unrecognized request argument supplied: top_k');
      if (max_tokens !== undefined)
        return refused("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.");
      if (stop !== undefined)
        return refused("Unsupported parameter: 'stop' is not supported with this model.");
      return plainReply(request);
    });
    await withProxy(engine, 'openai', {}, async (proxy, capability) => {
      const asked = (more: object = {}, by = capability) =>
        fetch(`${proxy.url}/s/${by}/v1/messages`, {
          method: 'POST',
          body: JSON.stringify({
            messages: MESSAGES,
            max_tokens: 9,
            top_k: 4,
            thinking: { type: 'adaptive' },
            ...more,
          }),
        });
      for (const tries of [4, 5]) {
        expect((await asked()).status).to.equal(200);
        expect(engine.at('/v1/chat/completions')).to.have.length(tries);
      }
      const { body } = engine.at('/v1/chat/completions').at(-1)!;
      expect(body).to.include({ max_completion_tokens: 9 }).and.not.have.any.keys('top_k', 'max_tokens');
      const [record] = await proxy.records('s');
      expect(record?.sampling).to.deep.equal({ max_completion_tokens: 9 });
      // What decides what a reply is, is never left out, nor what the task itself asks for.
      expect((await asked({ stop_sequences: ['x'] })).status).to.equal(400);
      const ordered = await proxy.admit('ordered', 1, { sampling: { topK: 4 } });
      expect((await asked({}, ordered)).status).to.equal(400);
    });
  });

  it('records an engine of kind openai without ids', async () => {
    await using engine = await RawEngine.start(plainReply);
    await withProxy(engine, 'openai', {}, async (proxy, capability) => {
      expect((await ask(proxy, capability)).status).to.equal(200);
      const [record] = await proxy.records('s');
      expect(record).to.deep.include({ noTokenIds: true, trainable: true, promptLength: 0, baseIndex: -1 });
      expect(record?.usage?.completionTokens).to.equal(5);
      // None of the fields that only engines with ids know.
      expect(Object.keys(engine.at('/v1/chat/completions')[0]?.body).sort()).to.deep.equal([
        'messages',
        'model',
        'stream',
      ]);
    });
  });

  it('records a stream that breaks at an engine of kind openai, too', async () => {
    const half = { model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'half' } }] };
    await using engine = await RawEngine.start((request) =>
      request.path.endsWith('/completions')
        ? { type: 'text/event-stream', body: sse(half), cut: true }
        : plainReply(request),
    );
    await withProxy(engine, 'openai', {}, async (proxy, capability) => {
      const { whole } = await readEvents(await ask(proxy, capability, { stream: true }));
      expect(whole).to.equal(false);
      const [record] = await proxy.records('s');
      expect(record).to.deep.include({ noTokenIds: true, finishReason: 'error', replyDigest: '' });
    });
  });
});

describe('llm-proxy and what stands before engines', () => {
  /** A proxy over `router`, with two workers behind it. */
  const withWorkers = async (
    answer: (request: RawRequest, urls: string[]) => RawAnswer,
    work: (proxy: TestProxy, workers: WireEngine[], router: RawEngine) => Promise<void>,
  ): Promise<void> => {
    await using first = await WireEngine.start('sglang');
    await using second = await WireEngine.start('sglang');
    const urls = [first.url, second.url];
    await using router = await RawEngine.start((request) => answer(request, urls));
    const inference = { scheduler: 'sglang_router' };
    await using proxy = await TestProxy.start({ engineUrl: router.url, kind: 'sglang', inference });
    await work(proxy, [first, second], router);
  };
  const regular = (urls: string[]): RawAnswer => ({
    body: { workers: urls.map((url) => ({ id: url, url, worker_type: 'regular', is_healthy: true })) },
  });

  it('finds the workers of a router, calls them directly, and follows its list', async () => {
    let urls: string[] = [];
    const listed = (request: RawRequest, all: string[]): RawAnswer => {
      if (urls.length === 0) urls = all;
      return request.path === '/workers' ? regular(urls) : NOT_FOUND;
    };
    await withWorkers(listed, async (proxy, workers, router) => {
      for (let i = 0; i < 4; i++) expect((await ask(proxy, await proxy.admit(`s${i}`))).status).to.equal(200);
      expect(workers.map(({ bodies }) => bodies.length)).to.deep.equal([2, 2]);
      expect(router.at('/v1/chat/completions')).to.have.length(0);
      urls = [workers[1]!.url];
      const known = async (): Promise<number> => (await proxy.client.listEngines({})).engines.length;
      await eventually('one is left', async () => (await known()) === 1);
      for (let i = 4; i < 8; i++) expect((await ask(proxy, await proxy.admit(`s${i}`))).status).to.equal(200);
      expect(workers.map(({ bodies }) => bodies.length)).to.deep.equal([2, 6]);
    });
  });

  it('finds those of an older router', async () => {
    const older = ({ path }: RawRequest, urls: string[]): RawAnswer =>
      path === '/list_workers' ? { body: { urls } } : NOT_FOUND;
    await withWorkers(older, async (proxy, workers) => {
      expect((await ask(proxy, await proxy.admit('s'))).status).to.equal(200);
      expect(workers.map(({ bodies }) => bodies.length)).to.deep.equal([1, 0]);
    });
  });

  it('calls the router itself where prefill and decode are apart', async () => {
    const split = (request: RawRequest, urls: string[]): RawAnswer => {
      const workers = urls.map((url, i) => ({ url, worker_type: i === 0 ? 'prefill' : 'decode' }));
      if (request.path === '/workers') return { body: { workers } };
      return plainReply(request);
    };
    await withWorkers(split, async (proxy, workers, router) => {
      // It tells no ids here, which is another matter.
      expect((await ask(proxy, await proxy.admit('s'))).status).to.equal(502);
      expect(router.at('/v1/chat/completions')).to.have.length(1);
      expect(workers.map(({ bodies }) => bodies.length)).to.deep.equal([0, 0]);
    });
  });

  it('names the program to a ThunderAgent, and tells its end once', async () => {
    let releases = 0;
    await using scheduler = await RawEngine.start((request) => {
      if (request.path !== '/programs/release') return plainReply(request);
      return ++releases === 1 ? { status: 500, body: {} } : { body: { released: true } };
    });
    const inference = { scheduler: 'thunderagent' };
    await using proxy = await TestProxy.start({ engineUrl: scheduler.url, kind: 'openai', inference });
    const capability = await proxy.admit('s');
    await ask(proxy, capability, { program_id: 'mine' });
    await ask(proxy, capability, { seed: 1 });
    const programs = scheduler.at('/v1/chat/completions').map(({ body }) => body.program_id);
    expect(programs).to.deep.equal(['n1:s.1', 'n1:s.1']);
    await proxy.client.closeSession({ sessionId: 's', attempt: 1 });
    await proxy.client.closeSession({ sessionId: 's', attempt: 1 });
    await proxy.revoke('s');
    await eventually('both are released', () => releases === 2);
    await sleep(100);
    expect(scheduler.at('/programs/release').map(({ body }) => body)).to.deep.equal([
      { program_id: 'n1:s.1' },
      { program_id: 'n1:s.1' },
    ]);
  });
});
