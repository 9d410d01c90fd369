// Policy versions and pauses, over two llm-proxies of one mesh.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { PauseMode, Policy_Phase } from '../../gen/ts/polar/event/v1/policy_pb.js';
import { PolicyService } from '../../gen/ts/polar/llm_proxy/v1/policy_service_pb.js';
import { createPlainClient } from '../../services/common/client.ts';
import { sleep } from '../../services/common/clock.ts';
import { asPolarError } from '../../services/common/errors.ts';
import { POLICY_HEARTBEAT_MS } from '../../services/common/limits.ts';
import { eventually } from '../support/eventually.ts';
import { readEvents, TestProxy } from '../support/llm-proxy.ts';
import { plainBehaviour, WireEngine } from '../support/wire-engine.ts';

const ROOT = join(import.meta.dirname, '../..');
const MESSAGES = [{ role: 'user', content: 'x' }];
const LONG = { content: 'word '.repeat(40) };
const reasonOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => '',
    (error) => asPolarError(error).reason,
  );

describe('llm-proxy policy', () => {
  let engine: WireEngine;
  let proxy: TestProxy;
  let other: TestProxy;
  const policy = () => createPlainClient(PolicyService, proxy.url);
  const otherPolicy = () => createPlainClient(PolicyService, other.url);
  before(async () => {
    engine = await WireEngine.start('vllm');
    proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm' });
    other = await TestProxy.beside(proxy, { engineUrl: engine.url, kind: 'vllm' });
    await other.spawn();
  });
  beforeEach(() => {
    engine.behaviour = plainBehaviour();
    engine.bodies.length = 0;
  });
  afterEach(async () => {
    await policy().resume({});
  });
  after(async () => {
    await other[Symbol.asyncDispose]();
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const chat = async (capability: string, at = proxy, stream = false) =>
    at.chat(capability, { messages: MESSAGES, stream });

  it('puts the version that was published on records, at every proxy', async () => {
    await policy().publishVersion({ policyVersion: 7n, weightVersion: 'step-7' });
    await eventually(
      'the other knows it',
      async () => (await otherPolicy().getPolicy({})).policy?.policyVersion === 7n,
    );
    for (const [session, at] of [
      ['version-0', proxy],
      ['version-1', other],
    ] as const) {
      const capability = await proxy.admit(session);
      expect((await chat(capability, at)).status).to.equal(200);
      const [record] = await proxy.records(session);
      expect(record).to.include({ policyVersion: 7n, weightVersion: 'step-7' });
    }
    expect(await reasonOf(policy().publishVersion({ policyVersion: 6n }))).to.equal('INVALID_REQUEST');
    expect(await reasonOf(otherPolicy().publishVersion({}))).to.equal('INVALID_REQUEST');
  });

  it('has one name for the weights of a version', async () => {
    const { policy: before } = await policy().getPolicy({});
    const [policyVersion, weightVersion] = [before!.policyVersion, before!.weightVersion];
    const repeated = await otherPolicy().publishVersion({ policyVersion, weightVersion });
    expect(repeated.policy).to.deep.equal(before);
    const other = { policyVersion, weightVersion: 'others' };
    expect(await reasonOf(otherPolicy().publishVersion(other))).to.equal('VERSION_EXISTS');
    const { policy: held } = await policy().pause({});
    expect(await reasonOf(policy().resume({ pauseId: held!.pauseId, ...other }))).to.equal('VERSION_EXISTS');
    expect(await reasonOf(policy().resume({ weightVersion: 'others' }))).to.equal('INVALID_REQUEST');
    const { policy: behind } = await policy().resume({ policyVersion, weightVersion });
    expect(behind).to.include({ phase: Policy_Phase.SERVING, policyVersion, weightVersion });
  });

  it('drains: calls in flight end, new ones wait at both proxies until it is resumed, with its version', async () => {
    const [first, second, third] = await Promise.all(
      ['drain-0', 'drain-1', 'drain-2'].map((id) => proxy.admit(id)),
    );
    engine.behaviour.reply = () => LONG;
    engine.behaviour.delayMs = 40;
    const running = chat(second!, other, true);
    await eventually(
      'it runs',
      () => engine.bodies.some(({ messages }) => messages.length === 1) && inFlight(1),
    );
    const pausing = policy().pause({ mode: PauseMode.DRAIN });
    await eventually(
      'calls are held',
      async () => (await otherPolicy().getPolicy({})).policy?.phase === Policy_Phase.PAUSING,
    );
    const waiting = [chat(first!), chat(third!, other)];
    await eventually('both wait', () => waits(2));
    const asked = engine.bodies.length;
    expect((await readEvents(await running)).events.at(-1)).to.equal('[DONE]');
    const { policy: held } = await pausing;
    expect(held).to.include({ phase: Policy_Phase.PAUSED, mode: PauseMode.DRAIN });
    expect(engine.bodies.length).to.equal(asked);
    await otherPolicy().resume({ pauseId: held!.pauseId, policyVersion: 8n, weightVersion: 'step-8' });
    for (const answer of await Promise.all(waiting)) expect(answer.status).to.equal(200);
    for (const session of ['drain-0', 'drain-2']) {
      const [record] = await proxy.records(session);
      expect(record?.policyVersion).to.equal(8n);
      expect(record?.times?.queueMs).to.be.above(0);
    }
    const { pauses, phase } = (await policy().getPolicy({})).policy!;
    expect(phase).to.equal(Policy_Phase.SERVING);
    expect(pauses.at(-1)!.endMs > pauses.at(-1)!.startMs).to.equal(true);
  });

  const peers = async () => (await policy().getPolicy({})).proxies;
  const inFlight = async (count: number) =>
    (await peers()).reduce((sum, one) => sum + one.inFlight, 0) >= count;
  const waits = async (count: number) => (await peers()).reduce((sum, one) => sum + one.waiting, 0) >= count;

  it('waits for calls at proxies that one which has just started has not heard of yet', async () => {
    const capability = await proxy.admit('newcomer-0');
    engine.behaviour.reply = () => LONG;
    engine.behaviour.delayMs = 60;
    const state = { ended: false };
    const running = readEvents(await chat(capability, other, true)).then(() => {
      state.ended = true;
    });
    await using newcomer = await TestProxy.beside(proxy, { engineUrl: engine.url, kind: 'vllm' });
    await newcomer.startHere();
    const { policy: held } = await createPlainClient(PolicyService, newcomer.url).pause({});
    expect({ ...state, phase: held?.phase }).to.deep.equal({ ended: true, phase: Policy_Phase.PAUSED });
    await running;
  });

  it('gives up and asks again what nobody has seen, and ends as broken what had begun', async () => {
    const [hidden, seen] = await Promise.all(['abort-0', 'abort-1'].map((id) => proxy.admit(id)));
    engine.behaviour.reply = () => LONG;
    engine.behaviour.delayMs = 20_000;
    const whole = chat(hidden!);
    await eventually('it is asked', () => engine.bodies.length > 0 && inFlight(1));
    engine.behaviour.delayMs = 50;
    const stream = await chat(seen!, proxy, true);
    const aborted = engine.aborted;
    const { policy: held } = await policy().pause({ mode: PauseMode.ABORT_AND_RETRY });
    expect((await readEvents(stream)).whole).to.equal(false);
    await eventually('both are given up at the engine', () => engine.aborted >= aborted + 2);
    engine.behaviour.delayMs = 0;
    await policy().resume({ pauseId: held!.pauseId });
    expect((await whole).status).to.equal(200);
    const [again] = await proxy.records('abort-0');
    expect(again).to.include({ finishReason: 'stop', engineTries: 2 });
    const [broken] = await proxy.records('abort-1');
    expect(broken).to.include({ finishReason: 'abort', replyDigest: '', errorReason: '' });
    expect(broken!.sampledIds.length).to.be.above(0);
  });

  it('keeps calls in flight across the pause where it says so', async () => {
    const capability = await proxy.admit('keep-0');
    engine.behaviour.reply = () => LONG;
    engine.behaviour.delayMs = 40;
    const stream = await chat(capability, proxy, true);
    const { policy: held } = await policy().pause({ mode: PauseMode.KEEP });
    expect(held?.phase).to.equal(Policy_Phase.PAUSED);
    const { events, whole } = await readEvents(stream);
    expect({ whole, last: events.at(-1) }).to.deep.equal({ whole: true, last: '[DONE]' });
  });

  it('is withdrawn where it is not reached in time, and says who was in the way', async () => {
    const capability = await proxy.admit('late-0');
    engine.behaviour.reply = () => LONG;
    engine.behaviour.delayMs = 30;
    const stream = await chat(capability, proxy, true);
    const late = policy().pause({ timeout: durationFromMs(100) });
    await late.catch((error) => expect(error.message).to.match(/n1 \(1 calls in flight\)/));
    expect(await reasonOf(late)).to.equal('PAUSE_TIMEOUT');
    expect((await policy().getPolicy({})).policy?.phase).to.equal(Policy_Phase.SERVING);
    expect((await readEvents(stream)).events.at(-1)).to.equal('[DONE]');
  });

  it('refuses a second pause, and the end of another one', async () => {
    const { policy: held } = await policy().pause({ pauseId: 'mine' });
    expect((await otherPolicy().pause({ pauseId: 'mine' })).policy?.phase).to.equal(Policy_Phase.PAUSED);
    expect(await reasonOf(otherPolicy().pause({}))).to.equal('PAUSE_IN_PROGRESS');
    expect(await reasonOf(otherPolicy().pause({ pauseId: 'a b' }))).to.equal('INVALID_REQUEST');
    expect(await reasonOf(policy().resume({ pauseId: 'pause-other' }))).to.equal('PAUSE_IN_PROGRESS');
    expect(await reasonOf(policy().resume({ policyVersion: 1n }))).to.equal('INVALID_REQUEST');
    await policy().resume({ pauseId: held!.pauseId });
    expect((await policy().resume({})).policy?.phase).to.equal(Policy_Phase.SERVING);
    expect(await reasonOf(policy().pause({ ttl: durationFromMs(-1) }))).to.equal('INVALID_REQUEST');
  });

  it('is a block of a Python trainer', async () => {
    const python = join(ROOT, '.venv/bin/python');
    const script = join(ROOT, 'test/support/python-policy.py');
    const { stdout } = await promisify(execFile)(python, [script, proxy.url], {
      env: { ...process.env, PYTHONPATH: join(ROOT, 'clients/python/src') },
    });
    const outlasted = 'the pause ended by itself after ttl_s=0.1';
    expect(JSON.parse(stdout)).to.deep.equal([21, true, 22, 'no memory', 22, 'INVALID_REQUEST', outlasted]);
    expect((await policy().getPolicy({})).policy?.phase).to.equal(Policy_Phase.SERVING);
  });

  describe('by wall clocks that are apart', () => {
    const { now } = Date;
    afterEach(() => {
      Date.now = now;
    });

    for (const hours of [1, -1]) {
      it(`is reached, and lasts until it is resumed, where one is set by ${hours} hours`, async () => {
        Date.now = () => now() + hours * 3_600_000;
        const { policy: held } = await otherPolicy().pause({ timeout: durationFromMs(10_000) });
        const begun = performance.now();
        await sleep(POLICY_HEARTBEAT_MS * 2);
        expect((await policy().getPolicy({})).policy).to.include({ phase: Policy_Phase.PAUSED });
        const { policy: resumed } = await policy().resume({ pauseId: held!.pauseId });
        const { startMs, endMs } = resumed!.pauses.at(-1)!;
        const lastedMs = performance.now() - begun;
        expect(Number(endMs - startMs), 'length of the pause').to.be.within(lastedMs - 100, lastedMs + 5_000);
        expect((await policy().pause({ timeout: durationFromMs(10_000) })).policy?.phase).to.equal(
          Policy_Phase.PAUSED,
        );
      });
    }
  });

  it('outlives its owner and every proxy, and ends by itself', async () => {
    await policy().pause({ ttl: durationFromMs(1_500) });
    await other.kill();
    await proxy.stopHere();
    await proxy.startHere();
    const capability = await proxy.admit('ttl-0');
    const waiting = chat(capability);
    await eventually('it waits', () => waits(1));
    expect((await waiting).status).to.equal(200);
    expect((await policy().getPolicy({})).policy?.phase).to.equal(Policy_Phase.SERVING);
    await other.spawn();
  });
});
