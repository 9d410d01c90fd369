// Several engines behind one proxy: which one gets a call, and what happens when one is away, full or drained.
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import { STICKY_LOAD_SLACK } from '../../services/common/limits.ts';
import { eventually } from '../support/eventually.ts';
import { readEvents, TestProxy } from '../support/llm-proxy.ts';
import { RawEngine } from '../support/raw-engine.ts';
import { plainBehaviour, WireEngine } from '../support/wire-engine.ts';

const MESSAGES = [{ role: 'user', content: 'x' }];
const BUSY = { status: 500, body: { error: { message: 'out of memory' } } };

describe('llm-proxy with several engines', () => {
  let engines: [WireEngine, WireEngine];
  let proxy: TestProxy;
  let sessions = 0;
  before(async () => {
    engines = [await WireEngine.start('vllm'), await WireEngine.start('vllm')];
    const servers = engines.map(({ url }) => url);
    proxy = await TestProxy.start({
      engineUrl: '',
      kind: 'vllm',
      inference: { base_url: undefined, servers },
    });
  });
  beforeEach(() => {
    for (const engine of engines) {
      engine.behaviour = plainBehaviour();
      engine.bodies.length = 0;
    }
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    for (const engine of engines) await engine[Symbol.asyncDispose]();
  });

  const newSession = async (): Promise<{ id: string; capability: string }> => {
    const id = `engines-${sessions++}`;
    return { id, capability: await proxy.admit(id) };
  };
  const ask = async (capability: string, more: object = {}): Promise<number> => {
    const answer = await proxy.chat(capability, { messages: MESSAGES, ...more });
    await answer.arrayBuffer();
    return answer.status;
  };
  const urlsOf = async (session: string): Promise<string[]> =>
    (await proxy.records(session)).map(({ engineUrl }) => engineUrl);
  const counts = (): number[] => engines.map(({ bodies }) => bodies.length);
  const other = (engine: WireEngine): WireEngine => (engine === engines[0] ? engines[1] : engines[0]);
  const homeOf = async (session: string): Promise<WireEngine> => {
    const [url] = await urlsOf(session);
    return engines[0].url === url ? engines[0] : engines[1];
  };

  it('spreads sessions, and keeps each where its cache is', async () => {
    const all = await Promise.all(Array.from({ length: 6 }, newSession));
    for (let round = 0; round < 3; round++) for (const { capability } of all) await ask(capability);
    expect(counts()).to.deep.equal([9, 9]);
    for (const { id } of all) expect(new Set(await urlsOf(id)).size).to.equal(1);
  });

  it('asks another engine at once where one fails, streamed or not, and stays there', async () => {
    for (const stream of [false, true]) {
      const { id, capability } = await newSession();
      await ask(capability);
      const home = await homeOf(id);
      home.behaviour.status = () => BUSY;
      expect(await ask(capability, { stream })).to.equal(200);
      home.behaviour.status = () => undefined;
      expect(await ask(capability, { stream })).to.equal(200);
      const records = await proxy.records(id);
      expect(records.map(({ engineTries }) => engineTries)).to.deep.equal([1, 2, 1]);
      expect(records.map(({ engineUrl }) => engineUrl)).to.deep.equal([
        home.url,
        other(home).url,
        other(home).url,
      ]);
    }
  });

  it('asks another engine where a stream breaks before the first token, unseen', async () => {
    const { id, capability } = await newSession();
    await ask(capability);
    const home = await homeOf(id);
    home.behaviour.cutAfter = 0;
    const { events, whole } = await readEvents(
      await proxy.chat(capability, { messages: MESSAGES, stream: true }),
    );
    expect({ whole, last: events.at(-1) }).to.deep.equal({ whole: true, last: '[DONE]' });
    expect((await urlsOf(id))[1]).to.equal(other(home).url);
  });

  it('takes a session away from an engine that has far more to do than another', async () => {
    const { id, capability } = await newSession();
    await ask(capability);
    const home = await homeOf(id);
    const leave = new AbortController();
    home.behaviour.delayMs = 60_000;
    const body = (i: number): object => ({ messages: [{ role: 'user', content: `long ${i}` }] });
    const long = Array.from({ length: STICKY_LOAD_SLACK }, (_, i) =>
      proxy.chat(capability, body(i), { signal: leave.signal }).catch(() => {}),
    );
    await eventually('all are asked', () => home.bodies.length === STICKY_LOAD_SLACK + 1);
    expect(await ask(capability)).to.equal(200);
    expect((await urlsOf(id)).at(-1)).to.equal(other(home).url);
    leave.abort();
    await Promise.all(long);
  });

  it('gives an engine that is drained no calls, lets those in flight end, and takes it back', async () => {
    const { id, capability } = await newSession();
    await ask(capability);
    const home = await homeOf(id);
    home.behaviour.delayMs = 2_000;
    const inFlight = ask(capability, { seed: 1 });
    await eventually('it is asked', () => home.bodies.length === 2);
    expect(await proxy.client.drainEngine({ baseUrl: home.url })).to.include({ callsInFlight: 1 });
    expect(await ask(capability, { seed: 2 })).to.equal(200);
    expect(await inFlight).to.equal(200);
    expect((await urlsOf(id)).sort()).to.deep.equal([home.url, home.url, other(home).url].sort());
    const drained = (await proxy.client.listEngines({})).engines.find(({ baseUrl }) => baseUrl === home.url);
    expect(drained).to.include({ draining: true, callsInFlight: 0, healthy: true });
    // Nothing is left.
    await proxy.client.drainEngine({ baseUrl: other(home).url });
    await proxy.client.drainEngine({ baseUrl: home.url, undo: true });
    expect(await ask(capability, { seed: 3 })).to.equal(200);
    expect((await urlsOf(id)).at(-1)).to.equal(home.url);
    await proxy.client.drainEngine({ baseUrl: other(home).url, undo: true });
    const unknown = await proxy.client.drainEngine({ baseUrl: 'http://127.0.0.1:1' }).catch((error) => error);
    expect(unknown).to.include({ reason: 'NOT_FOUND' });
  });

  it('goes on without an engine that is gone, and uses it again when it is back', async () => {
    const [first, second] = engines;
    const { port } = first;
    await first[Symbol.asyncDispose]();
    for (let i = 0; i < 4; i++) expect(await ask((await newSession()).capability)).to.equal(200);
    // Not asked any more: no call has had to try twice.
    const { id, capability } = await newSession();
    await ask(capability);
    expect((await proxy.records(id)).map(({ engineTries }) => engineTries)).to.deep.equal([1]);
    engines[0] = await WireEngine.start('vllm', port);
    const until = Date.now() + 15_000;
    while (engines[0].bodies.length === 0 && Date.now() < until) {
      await ask((await newSession()).capability);
      await sleep(100);
    }
    expect(engines[0].bodies.length).to.be.greaterThan(0);
    expect(second.bodies.length).to.be.greaterThan(4);
  });

  it('tells a harness what is wrong when no engine is left', async () => {
    for (const engine of engines) engine.behaviour.status = () => ({ status: 400, body: { message: 'no' } });
    expect(await ask((await newSession()).capability)).to.equal(400);
    // What an engine refuses, the next one refuses too.
    expect(counts().reduce((a, b) => a + b)).to.equal(1);
  });
});

describe('llm-proxy with an engine that takes one call at a time', () => {
  let engine: WireEngine;
  let proxy: TestProxy;
  before(async () => {
    engine = await WireEngine.start('vllm');
    const inference = { max_concurrency: 1, queue_timeout_seconds: 0.4 };
    proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm', inference });
  });
  beforeEach(() => {
    engine.behaviour = plainBehaviour();
    engine.bodies.length = 0;
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });
  const chat = (capability: string, content: string, init: RequestInit = {}): Promise<Response> =>
    proxy.chat(capability, { messages: [{ role: 'user', content }] }, init);

  it('lets calls wait in order, and counts the wait', async () => {
    const capability = await proxy.admit('queue-0');
    engine.behaviour.delayMs = 60;
    const answers = ['a', 'b', 'c'].map((content) => chat(capability, content));
    for (const answer of await Promise.all(answers)) expect(answer.status).to.equal(200);
    const records = await proxy.records('queue-0');
    const waits = records.map(({ times }) => times?.queueMs ?? 0);
    // One after another, so each waited longer than the one before it.
    expect(waits).to.deep.equal([...waits].sort((a, b) => a - b));
    expect(waits[2]).to.be.greaterThan(waits[0] as number);
    expect((await proxy.client.listEngines({})).engines[0]).to.include({
      callsInFlight: 0,
      callsInFlightMax: 1,
      sessions: 1,
    });
  });

  it('tells a harness to come again when a place does not come', async () => {
    const capability = await proxy.admit('queue-1');
    engine.behaviour.delayMs = 1_500;
    const first = chat(capability, 'first');
    await eventually('it is asked', () => engine.bodies.length > 0);
    const second = await chat(capability, 'second');
    expect(second.status).to.equal(429);
    expect(Number(second.headers.get('retry-after'))).to.be.greaterThan(0);
    expect(((await second.json()) as { error: { code: string } }).error.code).to.equal('engine_busy');
    expect((await first).status).to.equal(200);
    expect(engine.bodies).to.have.length(1);
  });

  it('gives the place of a harness that has left to the next one', async () => {
    const capability = await proxy.admit('queue-2');
    engine.behaviour.delayMs = 60_000;
    const leave = new AbortController();
    const first = chat(capability, 'first', { signal: leave.signal }).catch(() => {});
    await eventually('it is asked', () => engine.bodies.length > 0);
    engine.behaviour.delayMs = 0;
    const gone = new AbortController();
    const waiting = chat(capability, 'gone', { signal: gone.signal }).catch(() => {});
    const last = chat(capability, 'last');
    await sleep(50);
    gone.abort();
    await sleep(50);
    leave.abort();
    expect((await last).status).to.equal(200);
    await Promise.all([first, waiting]);
    expect(engine.bodies.map(({ messages }) => messages[0]?.content)).to.deep.equal(['first', 'last']);
  });
});

describe('llm-proxy with two engines that take one call at a time each', () => {
  it('gives a place that those before it do not want to the next one', async () => {
    await using first = await WireEngine.start('vllm');
    await using second = await WireEngine.start('vllm');
    const servers = [first.url, second.url];
    const inference = { base_url: undefined, servers, max_concurrency: 1, queue_timeout_seconds: 5 };
    await using proxy = await TestProxy.start({ engineUrl: '', kind: 'vllm', inference });
    const leave = new AbortController();
    const ask = async (session: string, init: RequestInit = {}): Promise<number> =>
      (await proxy.chat(await proxy.admit(session), { messages: MESSAGES }, init)).status;
    first.behaviour.delayMs = 60_000;
    const left = ask('places-0', { signal: leave.signal }).catch(() => {});
    await eventually('one is busy', () => first.bodies.length === 1);
    // What it fails waits for the other one.
    second.behaviour.status = () => BUSY;
    const failed = ask('places-1');
    await eventually('the other one has failed a call', () => second.bodies.length === 1);
    second.behaviour.status = () => undefined;
    expect(await ask('places-2')).to.equal(200);
    expect(second.bodies).to.have.length(2);
    first.behaviour.delayMs = 0;
    leave.abort();
    expect(await failed).to.equal(200);
    await left;
  });
});

describe('llm-proxy with the engines that a router tells', () => {
  it('knows one that comes back: it stays drained until that is undone, and has the calls that it had', async () => {
    await using engine = await WireEngine.start('sglang');
    await using other = await WireEngine.start('sglang');
    let urls = [engine.url, other.url];
    await using router = await RawEngine.start(({ path }) =>
      path === '/workers' ? { body: { workers: urls.map((url) => ({ url })) } } : { status: 404, body: {} },
    );
    const inference = { scheduler: 'sglang_router', max_concurrency: 1 };
    await using proxy = await TestProxy.start({ engineUrl: router.url, kind: 'sglang', inference });
    const capability = await proxy.admit('comes-back');
    const ask = (content: string, init: RequestInit = {}): Promise<Response> =>
      proxy.chat(capability, { messages: [{ role: 'user', content }] }, init);
    const told = async (): Promise<(number | boolean)[][]> =>
      (await proxy.client.listEngines({})).engines
        .filter(({ baseUrl }) => baseUrl === engine.url)
        .map(({ draining, callsInFlight }) => [draining, callsInFlight]);
    await ask('first');
    await proxy.client.drainEngine({ baseUrl: other.url });
    engine.behaviour.delayMs = 60_000;
    const leave = new AbortController();
    const asked = engine.bodies.length;
    const long = ask('long', { signal: leave.signal }).catch(() => {});
    await eventually('it is asked', () => engine.bodies.length === asked + 1);
    await proxy.client.drainEngine({ baseUrl: engine.url });
    urls = [other.url];
    await eventually('it is gone', async () => (await told()).length === 0);
    urls = [engine.url, other.url];
    await eventually('it is back', async () => (await told()).length === 1);
    expect(await told()).to.deep.equal([[true, 1]]);
    leave.abort();
    await long;
    urls = [other.url];
    await eventually('it is gone', async () => (await told()).length === 0);
    expect(await proxy.client.drainEngine({ baseUrl: engine.url, undo: true })).to.include({
      callsInFlight: 0,
    });
  });
});
