// The record log of the llm-proxy against a real nats-server, and calls whose records do not fit into one message.
import { connect } from 'node:http2';
import { text } from 'node:stream/consumers';
import { create } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Completion, CompletionSchema } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { packIds, unpackIds } from '../../services/common/columns.ts';
import { INLINE_BYTES_MAX } from '../../services/common/limits.ts';
import { createBlobStore } from '../../services/common/nats/blobs.ts';
import { STREAMS } from '../../services/common/nats/streams.ts';
import { RecordLog } from '../../services/llm-proxy/attempts/record-log.ts';
import { promptsOf, TestProxy } from '../support/llm-proxy.ts';
import { plainBehaviour, promptIds, type WireBody, WireEngine } from '../support/wire-engine.ts';

const record = (callId: string, index: number): Completion =>
  create(CompletionSchema, {
    callId,
    index,
    baseIndex: index - 1,
    baseLength: index,
    sampledIds: packIds([index]),
    endSeq: BigInt(index * 2 + 1),
  });

/** Calls one after another, from one on behind a record that ended with 40. */
function expectOrder(records: readonly Completion[], from: number): void {
  let last = 40n;
  for (const { startSeq, endSeq } of records.slice(from)) {
    expect(startSeq > last && endSeq > startSeq, `${startSeq} to ${endSeq} behind ${last}`).to.equal(true);
    last = endSeq;
  }
}

describe('llm-proxy records', () => {
  let engine: WireEngine;
  let proxy: TestProxy;
  let log: RecordLog;
  before(async () => {
    engine = await WireEngine.start('vllm');
    proxy = await TestProxy.start({ engineUrl: engine.url, kind: 'vllm' });
    log = new RecordLog(proxy.bus, createBlobStore(proxy.bus), new AbortController().signal);
  });
  beforeEach(() => {
    engine.behaviour = plainBehaviour();
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  it('are stored once when a publish is repeated, and not at all behind another writer', async () => {
    const key = { sessionId: 'chain-0', attempt: 1 };
    const first = await log.append(key, record('a', 0), 0);
    expect(await log.append(key, record('a', 0), 0)).to.equal(first);
    expect(await log.append(key, record('b', 0), 0)).to.equal(undefined);
    const second = await log.append(key, record('b', 1), first!);
    expect((await proxy.records('chain-0')).map(({ callId }) => callId)).to.deep.equal(['a', 'b']);
    expect(await log.load(key)).to.include({ calls: 2, firstSeq: first, lastSeq: second, nextOrder: 4n });
  });

  it('go on behind a record that arrived after its call was given up', async () => {
    const capability = await proxy.admit('late-0');
    const messages = [{ role: 'user', content: 'x' }];
    await (await proxy.chat(capability, { messages })).text();
    const [first] = await proxy.records('late-0');
    const { seq } = await proxy.bus.direct.getMessage(STREAMS.completions.name, {
      last_by_subj: 'polar.v1.completion.late-0.1',
    });
    const late = create(CompletionSchema, { ...first!, callId: 'late', index: 1, endSeq: 40n });
    expect(await log.append({ sessionId: 'late-0', attempt: 1 }, late, seq)).to.be.greaterThan(seq);
    await (await proxy.chat(capability, { messages })).text();
    const records = await proxy.records('late-0');
    expect(records.map(({ index }) => index)).to.deep.equal([0, 1, 2]);
    expect(promptsOf(records)[2]).to.deep.equal(promptIds(messages));
    expectOrder(records, 2);
  });

  it('are not looked for where the attempt is new, and found where there is one in spite of that', async () => {
    let asked = 0;
    const looks = proxy.bus.nc.subscribe(`$JS.API.STREAM.MSG.GET.${STREAMS.completions.name}`, {
      callback: () => asked++,
    });
    const messages = [{ role: 'user', content: 'x' }];
    const call = async (capability: string): Promise<string> =>
      await (await proxy.chat(capability, { messages })).text();
    await call(await proxy.admit('new-0'));
    expect(asked, 'new').to.equal(0);

    const [first] = await proxy.records('new-0');
    const early = create(CompletionSchema, { ...first!, callId: 'early', endSeq: 40n });
    const capability = await proxy.admit('early-0');
    await log.append({ sessionId: 'early-0', attempt: 1 }, early, 0);
    await call(capability);
    await call(capability);
    const records = await proxy.records('early-0');
    expect(records.map(({ index }) => index)).to.deep.equal([0, 1, 2]);
    expectOrder(records, 1);

    const before = await proxy.admit('before-0');
    await proxy.stopHere();
    await proxy.startHere();
    asked = 0;
    await call(before);
    expect(asked, 'granted before the proxy started').to.equal(1);
    looks.unsubscribe();
  });

  it('are read again in full after a restart, also where there are many and large ones', async () => {
    const capability = await proxy.admit('long-0');
    const messages: WireBody['messages'] = [{ role: 'user', content: 'big '.repeat(INLINE_BYTES_MAX / 8) }];
    for (let turn = 0; turn < 40; turn++) {
      engine.behaviour.reply = () => ({ content: `a${turn}` });
      if (turn === 39) {
        await proxy.stopHere();
        await proxy.startHere();
      }
      expect((await proxy.chat(capability, { messages })).status).to.equal(200);
      messages.push({ role: 'assistant', content: `a${turn}` }, { role: 'user', content: `u${turn}` });
    }
    const records = await proxy.records('long-0');
    expect(records.map(({ index }) => index)).to.deep.equal([...Array(40).keys()]);
    expect(promptsOf(records).at(-1)).to.deep.equal(promptIds(messages.slice(0, -2)));
    for (const later of records.slice(1)) expect(unpackIds(later.promptSuffixIds).length).to.be.lessThan(30);
    expect(await proxy.bus.jsm.consumers.list(STREAMS.completions.name).next()).to.deep.equal([]);
  }).timeout(60_000);

  it('are written for HTTP/2 as for HTTP/1.1', async () => {
    const capability = await proxy.admit('h2-0');
    const session = connect(proxy.url);
    for (const stream of [false, true]) {
      const path = `/s/${capability}/v1/chat/completions`;
      const request = session.request({
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/json',
      });
      request.end(JSON.stringify({ messages: [{ role: 'user', content: 'x' }], stream }));
      const body = await text(request);
      if (stream) expect(body.endsWith('data: [DONE]\n\n')).to.equal(true);
      else expect(JSON.parse(body)).to.have.nested.property('choices[0].message.content', 'hello');
    }
    engine.behaviour.cutAfter = 3;
    engine.behaviour.delayMs = 5;
    engine.behaviour.reply = () => ({ content: 'a b c d e f g' });
    const request = session.request({ ':method': 'POST', ':path': `/s/${capability}/v1/chat/completions` });
    request.end(JSON.stringify({ messages: [{ role: 'user', content: 'x' }], stream: true }));
    const ended = await text(request).then(
      () => 'whole',
      () => 'cut',
    );
    session.destroy();
    expect(ended).to.equal('cut');
    expect((await proxy.records('h2-0')).map(({ finishReason }) => finishReason)).to.deep.equal([
      'stop',
      'stop',
      'error',
    ]);
  });

  it('cost the engine one connection for calls one after another', async () => {
    const capability = await proxy.admit('reuse-0');
    const before = engine.connections;
    for (let i = 0; i < 10; i++) {
      const body = { messages: [{ role: 'user', content: 'x' }], stream: i % 2 === 0 };
      await (await proxy.chat(capability, body)).text();
    }
    expect(engine.connections - before).to.be.at.most(1);
  });
});
