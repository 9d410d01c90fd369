// What goes wrong around the llm-proxy: engines that fail, streams that break, harnesses that leave, kills.
import { expect } from 'chai';
import { sleep } from '../../services/common/clock.ts';
import { unpackIds } from '../../services/common/columns.ts';
import { eventually } from '../support/eventually.ts';
import { promptsOf, readEvents, TestProxy } from '../support/llm-proxy.ts';
import { freePort } from '../support/nats.ts';
import { plainBehaviour, promptIds, sampledIds, type WireBody, WireEngine } from '../support/wire-engine.ts';

const MESSAGES = [{ role: 'user', content: 'x' }];
const LONG = { content: 'word '.repeat(60) };

interface ErrorAnswer {
  error: { message: string; type: string; param: string | null; code: string };
}
const errorOf = async (answer: Response): Promise<ErrorAnswer['error']> =>
  ((await answer.json()) as ErrorAnswer).error;

for (const kind of ['vllm', 'sglang'] as const) {
  describe(`llm-proxy faults with ${kind}`, () => {
    let engine: WireEngine;
    let proxy: TestProxy;
    before(async () => {
      engine = await WireEngine.start(kind);
      proxy = await TestProxy.start({ engineUrl: engine.url, kind });
    });
    beforeEach(() => {
      engine.behaviour = plainBehaviour();
    });
    after(async () => {
      await proxy[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
    });

    const recordsOf = async (session: string, count: number) => {
      await eventually('it is recorded', async () => (await proxy.records(session)).length >= count);
      return await proxy.records(session);
    };

    it('never ends a cut stream cleanly, and records what the engine has told', async () => {
      const capability = await proxy.admit('cut-0');
      engine.behaviour.reply = () => LONG;
      engine.behaviour.cutAfter = 7;
      engine.behaviour.delayMs = 3;
      const { events, whole } = await readEvents(
        await proxy.chat(capability, { messages: MESSAGES, stream: true }),
      );
      expect(whole).to.equal(false);
      expect(events).to.not.include('[DONE]');
      expect(events.length).to.be.within(6, 8);
      const closed = await proxy.client.closeSession({ sessionId: 'cut-0', attempt: 1 });
      expect(closed.lastFailure?.reason).to.equal('ENGINE_STREAM_CUT');
      const records = await proxy.records('cut-0');
      expect(records).to.have.length(1);
      const [record] = records;
      expect(record).to.include({
        finishReason: 'error',
        errorReason: 'ENGINE_STREAM_CUT',
        replyDigest: '',
        // SGLang tells ids only at the end: it is known how much was sampled, and not what.
        noTokenIds: kind === 'sglang',
      });
      const sampled = unpackIds(record!.sampledIds);
      // Seven pieces of three letters were written; the last may have been lost with the connection.
      expect(kind === 'vllm' ? sampled.length : record?.usage?.completionTokens).to.be.within(15, 21);
      expect([...sampled]).to.deep.equal(sampledIds(LONG).slice(0, sampled.length));
    });

    it('takes an error event in a stream for what it is', async () => {
      const capability = await proxy.admit('event-0');
      engine.behaviour.reply = () => LONG;
      engine.behaviour.errorAfter = 4;
      engine.behaviour.delayMs = 3;
      const { events, whole } = await readEvents(
        await proxy.chat(capability, { messages: MESSAGES, stream: true }),
      );
      expect({ whole, done: events.includes('[DONE]') }).to.deep.equal({ whole: false, done: false });
      const closed = await proxy.client.closeSession({ sessionId: 'event-0', attempt: 1 });
      expect(closed.lastFailure?.reason).to.equal('ENGINE_UNAVAILABLE');
    });

    it('tries again what broke before the first token, unseen by the harness', async () => {
      const capability = await proxy.admit('early-0');
      engine.behaviour.cutAfter = 0;
      const before = engine.bodies.length;
      const asked = proxy.chat(capability, { messages: MESSAGES, stream: true });
      await eventually('it broke twice', () => engine.bodies.length > before + 1);
      engine.behaviour.cutAfter = undefined;
      const { events, whole } = await readEvents(await asked);
      expect({ whole, last: events.at(-1) }).to.deep.equal({ whole: true, last: '[DONE]' });
      expect(await proxy.records('early-0')).to.have.length(1);
    });

    it('tries again on 500 and 429, then passes the reply on', async () => {
      const capability = await proxy.admit('flaky-0');
      let asked = 0;
      const body = { error: { message: 'busy', code: 500 } };
      engine.behaviour.status = () => (asked++ < 2 ? { status: asked === 1 ? 500 : 429, body } : undefined);
      expect((await proxy.chat(capability, { messages: MESSAGES })).status).to.equal(200);
      expect(asked).to.equal(3);
      const closed = await proxy.client.closeSession({ sessionId: 'flaky-0', attempt: 1 });
      expect(closed.lastFailure).to.equal(undefined);
    });

    it('passes on what the engine refuses, in the form of the dialect', async () => {
      const capability = await proxy.admit('refused-0');
      const refusal = (message: string) => () => ({
        status: 400,
        body:
          kind === 'vllm'
            ? { error: { message, type: 'BadRequestError', code: 400 } }
            : { object: 'error', message, code: 400 },
      });
      engine.behaviour.status = refusal('temperature must be non-negative');
      const plain = await proxy.chat(capability, { messages: MESSAGES });
      expect(plain.status).to.equal(400);
      expect(await errorOf(plain)).to.include({
        message: 'temperature must be non-negative',
        code: 'engine_refused',
      });
      engine.behaviour.status = refusal(
        "This model's maximum context length is 4096 tokens. However, you requested 5000",
      );
      const long = await proxy.chat(capability, { messages: MESSAGES, stream: true });
      expect(long.status).to.equal(400);
      expect(await errorOf(long)).to.include({ code: 'context_length_exceeded', param: 'messages' });
      const closed = await proxy.client.closeSession({ sessionId: 'refused-0', attempt: 1 });
      expect(closed.calls).to.equal(0);
      expect(closed.lastFailure).to.equal(undefined);
    });

    it('stops the engine when the harness leaves, and records what was sampled as cancelled', async () => {
      const capability = await proxy.admit('left-0');
      engine.behaviour.reply = () => LONG;
      engine.behaviour.delayMs = 10;
      const leave = new AbortController();
      const before = engine.aborted;
      const answer = await proxy.chat(
        capability,
        { messages: MESSAGES, stream: true },
        { signal: leave.signal },
      );
      const reader = answer.body!.getReader();
      for (let told = ''; told.split('"content":"').length <= 4; ) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`ended with ${told}`);
        told += Buffer.from(value).toString();
      }
      leave.abort();
      await reader.read().catch(() => {});
      const [record] = await recordsOf('left-0', 1);
      await eventually('the engine has stopped', () => engine.aborted === before + 1);
      expect(record).to.include({ finishReason: 'cancelled', replyDigest: '', errorReason: '' });
      const told = unpackIds(record!.sampledIds).length;
      const sampled = kind === 'vllm' ? told : record?.usage?.completionTokens;
      expect(sampled).to.be.within(3, sampledIds(LONG).length - 1);
      const closed = await proxy.client.closeSession({ sessionId: 'left-0', attempt: 1 });
      expect(closed.lastFailure).to.equal(undefined);
    });

    it('stops the engine when a harness leaves that waits for a whole reply', async () => {
      const capability = await proxy.admit('left-1');
      engine.behaviour.delayMs = 5_000;
      const before = { aborted: engine.aborted, asked: engine.bodies.length };
      const leave = new AbortController();
      const left = proxy.chat(capability, { messages: MESSAGES }, { signal: leave.signal }).catch(() => {});
      await eventually('the engine is asked', () => engine.bodies.length > before.asked);
      leave.abort();
      await left;
      await eventually('the engine has stopped', () => engine.aborted === before.aborted + 1);
    });

    it('aborts what is in flight when the session is closed', async () => {
      const capability = await proxy.admit('closing-0');
      engine.behaviour.reply = () => LONG;
      engine.behaviour.delayMs = 10;
      const answer = await proxy.chat(capability, { messages: MESSAGES, stream: true });
      const closed = await proxy.client.closeSession({ sessionId: 'closing-0', attempt: 1 });
      expect(closed.calls).to.equal(1);
      expect((await readEvents(answer)).whole).to.equal(false);
      expect(await proxy.records('closing-0')).to.have.length(closed.calls);
    });

    it('leaves an engine alone for as long as it says, and tells the harness', async () => {
      const capability = await proxy.admit('later-0');
      let asked = 0;
      engine.behaviour.status = () => {
        asked++;
        return { status: 429, body: { message: 'busy' }, retryAfter: '60' };
      };
      const answer = await proxy.chat(capability, { messages: MESSAGES });
      expect(answer.status).to.equal(503);
      expect(answer.headers.get('retry-after')).to.equal('60');
      expect(asked).to.equal(1);
    });

    it('does not take a reply that the engine interrupted for an answer', async () => {
      const capability = await proxy.admit('abort-0');
      engine.behaviour.reply = () => ({ content: 'half', finish: 'abort' });
      const answer = await proxy.chat(capability, { messages: MESSAGES });
      expect(answer.status).to.equal(503);
      expect(answer.headers.get('retry-after')).to.equal('1');
      const [record] = await proxy.records('abort-0');
      expect(record).to.include({ finishReason: 'abort', replyDigest: '' });
      expect([...unpackIds(record!.sampledIds)]).to.deep.equal(sampledIds({ content: 'half' }));
    });
  });
}

describe('llm-proxy and what it needs', () => {
  it('writes the record before the last byte, and passes nothing on that it could not record', async () => {
    await using engine = await WireEngine.start('vllm');
    await using proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm' });
    const capability = await proxy.admit('order-0');
    await (await proxy.chat(capability, { messages: MESSAGES })).text();
    await proxy.nats.kill();
    const streamed = await proxy.chat(capability, { messages: MESSAGES, stream: true });
    const whole = proxy.chat(capability, { messages: MESSAGES });
    const state = { streamed: false, whole: false };
    const events = readEvents(streamed).then((read) => {
      state.streamed = true;
      return read;
    });
    void whole.then(() => {
      state.whole = true;
    });
    await sleep(700);
    expect(state).to.deep.equal({ streamed: false, whole: false });
    await proxy.nats.start();
    expect((await events).events.at(-1)).to.equal('[DONE]');
    expect((await whole).status).to.equal(200);
    const records = await proxy.records('order-0');
    expect(records.map(({ index }) => index)).to.deep.equal([0, 1, 2]);
    // The credentials are known again after the server came back, and new ones come in.
    const other = await proxy.admit('order-1');
    expect((await proxy.chat(other, { messages: MESSAGES })).status).to.equal(200);
    await proxy.revoke('order-1');
    const status = async (): Promise<number> => (await proxy.chat(other, { messages: MESSAGES })).status;
    await eventually('it is not known any more', async () => (await status()) === 401);
  }).timeout(60_000);

  it('goes on with the same tree at the same address after kill -9 of the proxy', async () => {
    await using engine = await WireEngine.start('vllm');
    await using proxy = await TestProxy.prepare({ engineUrl: engine.url, kind: 'vllm' });
    const capability = await proxy.admit('killed-0');
    const messages: WireBody['messages'] = [{ role: 'user', content: 'begin' }];
    const closed = { sessionId: 'killed-0', attempt: 1 };
    for (let turn = 0; turn < 4; turn++) {
      await proxy.spawn();
      engine.behaviour.reply = () => ({ content: `answer ${turn}` });
      for (const stream of [true, false]) {
        const answer = await proxy.chat(capability, { messages, stream });
        expect(answer.status).to.equal(200);
        await answer.text();
      }
      messages.push(
        { role: 'assistant', content: `answer ${turn}` },
        { role: 'user', content: `next ${turn}` },
      );
      if (turn < 3) await proxy.kill();
    }
    const records = await proxy.records('killed-0');
    expect(records.map(({ index }) => index)).to.deep.equal([...Array(8).keys()]);
    const prompts = promptsOf(records);
    for (const [i, record] of records.entries()) {
      const turn = Math.floor(i / 2);
      expect(prompts[i]).to.deep.equal(promptIds(messages.slice(0, turn * 2 + 1)));
      expect(unpackIds(record.promptSuffixIds).length).to.be.lessThan(i === 0 ? 100 : 35);
      if (i > 0) expect(record.startSeq > records[i - 1]!.endSeq).to.equal(true);
    }
    const said = await proxy.client.closeSession(closed);
    expect(said.calls).to.equal(8);
    await proxy.kill();
    await proxy.spawn();
    expect(await proxy.client.closeSession(closed)).to.deep.include({
      calls: 8,
      firstSeq: said.firstSeq,
      lastSeq: said.lastSeq,
    });
    expect(await proxy.kill('SIGTERM')).to.equal(0);
  }).timeout(120_000);

  it('waits for an engine that comes, and answers 503 with retry-after for one that does not', async () => {
    const port = await freePort();
    await using proxy = await TestProxy.start({ engineUrl: `http://127.0.0.1:${port}`, kind: 'sglang' });
    const capability = await proxy.admit('down-0');
    const waiting = proxy.chat(capability, { messages: MESSAGES });
    await sleep(500);
    const engine = await WireEngine.start('sglang', port);
    expect((await waiting).status).to.equal(200);
    await engine[Symbol.asyncDispose]();
    const answer = await proxy.chat(capability, { messages: MESSAGES, stream: true });
    expect(answer.status).to.equal(503);
    expect(answer.headers.get('retry-after')).to.equal('1');
    expect((await errorOf(answer)).message).to.contain('gateway.nodes[].inference.base_url');
    const { engines } = await proxy.client.listEngines({});
    expect(engines[0]).to.include({ healthy: false });
    const closed = await proxy.client.closeSession({ sessionId: 'down-0', attempt: 1 });
    expect(closed.calls).to.equal(1);
    expect(closed.lastFailure).to.include({ reason: 'ENGINE_UNAVAILABLE', infrastructure: true });
  }).timeout(60_000);
});
