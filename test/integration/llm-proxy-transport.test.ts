// The transport vectors: what happens to a session when requests, replies, processes and records go astray.
import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { expect } from 'chai';
import type { Completion } from '../../gen/ts/polar/event/v1/completion_pb.js';
import { unpackIds } from '../../services/common/columns.ts';
import { eventually } from '../support/eventually.ts';
import { breaches, exportedOf } from '../support/laws.ts';
import { promptsOf, readEvents, TestProxy } from '../support/llm-proxy.ts';
import { plainBehaviour, sampledIds, type WireBody, WireEngine } from '../support/wire-engine.ts';

type Message = WireBody['messages'][number];
const HELLO: Message[] = [{ role: 'user', content: 'hello' }];
const LONG = { content: 'word '.repeat(60) };

/** Text and finish reason of a streamed reply. */
function assembled(events: readonly string[]): { content: string; finish: string | null } {
  let content = '';
  let finish: string | null = null;
  for (const event of events) {
    if (event === '[DONE]') continue;
    const { choices } = JSON.parse(event) as {
      choices: { delta: { content?: string }; finish_reason: string | null }[];
    };
    content += choices[0]?.delta.content ?? '';
    finish = choices[0]?.finish_reason ?? finish;
  }
  return { content, finish };
}

/** What a streamed reply tells beside its text. */
function shown(events: readonly string[]): { logprobs: unknown[]; usage: unknown } {
  const chunks = events
    .filter((event) => event !== '[DONE]')
    .map(
      (event) => JSON.parse(event) as { choices: { logprobs?: { content?: unknown[] } }[]; usage?: unknown },
    );
  const logprobs = chunks.flatMap(({ choices }) =>
    choices.flatMap((choice) => choice.logprobs?.content ?? []),
  );
  return { logprobs, usage: chunks.at(-1)?.usage };
}

const replyOf = async (answer: Response): Promise<{ content: string; finish: string }> => {
  const { choices } = (await answer.json()) as {
    choices: { message: { content: string | null }; finish_reason: string }[];
  };
  return { content: choices[0]!.message.content ?? '', finish: choices[0]!.finish_reason };
};

const obeysLaws = (records: readonly Completion[]) =>
  expect(breaches([exportedOf(records)])).to.deep.equal([[]]);

describe('transport vectors', () => {
  let engine: WireEngine;
  let proxy: TestProxy;
  before(async () => {
    engine = await WireEngine.start('vllm');
    proxy = await TestProxy.prepare({ engineUrl: engine.url, kind: 'vllm' });
    await proxy.spawn();
  });
  beforeEach(() => {
    engine.behaviour = plainBehaviour();
    engine.bodies.length = 0;
  });
  after(async () => {
    await proxy[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const recorded = async (session: string, count: number): Promise<Completion[]> => {
    await eventually(`${count} records`, async () => (await proxy.records(session)).length >= count);
    const records = await proxy.records(session);
    expect(records).to.have.length(count);
    return records;
  };

  for (const stream of [false, true]) {
    it(`identical retry in flight, ${stream ? 'streamed' : 'whole'}: one generation, both answered`, async () => {
      const session = `same-${stream}`;
      const capability = await proxy.admit(session);
      engine.behaviour.reply = () => LONG;
      engine.behaviour.delayMs = stream ? 10 : 400;
      const body = { messages: HELLO, stream };
      const first = proxy.chat(capability, body);
      await eventually('it is asked', () => engine.bodies.length === 1);
      const answers = await Promise.all([first, proxy.chat(capability, body), proxy.chat(capability, body)]);
      // One that joins late is told in fewer events what was said.
      const saidIn = async (answer: Response): Promise<string> =>
        stream ? JSON.stringify(assembled((await readEvents(answer)).events)) : await answer.text();
      const texts = await Promise.all(answers.map(saidIn));
      expect(new Set(texts).size).to.equal(1);
      expect(texts[0]).to.include(LONG.content).and.include('"stop"');
      expect(engine.bodies).to.have.length(1);
      obeysLaws(await recorded(session, 1));
    });
  }

  for (const logprobs of [false, true]) {
    it(`identical retry in mid-stream, logprobs ${logprobs}: told all that was said before it came`, async () => {
      const capability = await proxy.admit(`late-${logprobs}`);
      engine.behaviour.reply = () => LONG;
      engine.behaviour.delayMs = 10;
      const body = { messages: HELLO, stream: true, logprobs, stream_options: { include_usage: true } };
      const first = await proxy.chat(capability, body);
      const [told, kept] = first.body!.tee();
      const reader = told.getReader();
      for (let pieces = 0; pieces < 5; pieces++) await reader.read();
      const second = await proxy.chat(capability, body);
      const replies = [(await readEvents(new Response(kept))).events, (await readEvents(second)).events];
      await reader.cancel();
      expect(replies[1]!.length).to.be.below(replies[0]!.length);
      const [one, other] = replies.map((events) => ({ ...assembled(events), ...shown(events) }));
      expect(other).to.deep.equal(one);
      expect(one).to.include({ content: LONG.content, finish: 'stop' });
      expect(one!.logprobs).to.have.length(logprobs ? sampledIds(LONG).length : 0);
      expect(engine.bodies).to.have.length(1);
      obeysLaws(await recorded(`late-${logprobs}`, 1));
    });
  }

  it('a shared generation goes on while one of its requests is left, and ends with the last', async () => {
    const capability = await proxy.admit('leaving-0');
    engine.behaviour.reply = () => LONG;
    engine.behaviour.delayMs = 20;
    const body = { messages: HELLO, stream: true };
    const leave = [new AbortController(), new AbortController()];
    const first = await proxy.chat(capability, body, { signal: leave[0]!.signal });
    const second = await proxy.chat(capability, body, { signal: leave[1]!.signal });
    const reader = second.body!.getReader();
    leave[0]!.abort();
    await first.text().catch(() => {});
    const { value } = await reader.read();
    expect(value?.length).to.be.above(0);
    expect(engine.aborted).to.equal(0);
    leave[1]!.abort();
    await reader.closed.catch(() => {});
    await eventually('the engine has stopped', () => engine.aborted === 1);
    const [record] = await recorded('leaving-0', 1);
    expect(record).to.include({ finishReason: 'cancelled', replyDigest: '' });
    expect(engine.bodies).to.have.length(1);
  });

  it('retry after leaving: a generation of its own, though the first one is still being recorded', async () => {
    const capability = await proxy.admit('left-and-back-0');
    engine.behaviour.reply = () => LONG;
    engine.behaviour.delayMs = 10;
    const body = { messages: HELLO, stream: true };
    const leaving = new AbortController();
    const first = await proxy.chat(capability, body, { signal: leaving.signal });
    await first.body!.getReader().read();
    const { aborted } = engine;
    process.kill(proxy.nats.pid, 'SIGSTOP');
    try {
      leaving.abort();
      await eventually('it is given up', () => engine.aborted > aborted);
      const second = proxy.chat(capability, body);
      await eventually('it is asked anew', () => engine.bodies.length === 2);
      process.kill(proxy.nats.pid, 'SIGCONT');
      expect((await readEvents(await second)).events.at(-1)).to.equal('[DONE]');
    } finally {
      process.kill(proxy.nats.pid, 'SIGCONT');
    }
    const records = await recorded('left-and-back-0', 2);
    expect(records.map(({ finishReason }) => finishReason)).to.deep.equal(['cancelled', 'stop']);
  });

  it('retry after delivery: a sibling with tokens of its own', async () => {
    const capability = await proxy.admit('again-0');
    let n = 0;
    engine.behaviour.reply = () => ({ content: `reply ${n++}` });
    const body = { messages: HELLO };
    const replies = [await proxy.chat(capability, body), await proxy.chat(capability, body)];
    expect(await Promise.all(replies.map(replyOf))).to.deep.equal([
      { content: 'reply 0', finish: 'stop' },
      { content: 'reply 1', finish: 'stop' },
    ]);
    const records = await recorded('again-0', 2);
    const [one, two] = promptsOf(records);
    expect(one).to.deep.equal(two);
    expect(records[1]!.promptSuffixIds).to.have.length(0);
    expect([...unpackIds(records[1]!.sampledIds)]).to.deep.equal(sampledIds({ content: 'reply 1' }));
    obeysLaws(records);
  });

  it('cancel mid-stream: the generation ends, what was sampled is kept and masked', async () => {
    const capability = await proxy.admit('cancel-0');
    engine.behaviour.reply = () => LONG;
    engine.behaviour.delayMs = 10;
    const leave = new AbortController();
    const answer = await proxy.chat(capability, { messages: HELLO, stream: true }, { signal: leave.signal });
    await answer.body!.getReader().read();
    const aborted = engine.aborted;
    leave.abort();
    await eventually('the engine has stopped', () => engine.aborted === aborted + 1);
    const [record] = await recorded('cancel-0', 1);
    expect(record!.finishReason).to.equal('cancelled');
    const sampled = [...unpackIds(record!.sampledIds)];
    expect(sampled).to.deep.equal(sampledIds(LONG).slice(0, sampled.length));
    obeysLaws([record!]);
  });

  it('retry after 503: the proxy asks again, the harness sees one reply', async () => {
    const capability = await proxy.admit('busy-0');
    let left = 2;
    engine.behaviour.status = () => (left-- > 0 ? { status: 503, body: { message: 'busy' } } : undefined);
    expect((await proxy.chat(capability, { messages: HELLO })).status).to.equal(200);
    const [record] = await recorded('busy-0', 1);
    expect(record).to.include({ engineTries: 3, finishReason: 'stop' });
  });

  it('upstream death mid-generation: a broken stream, its tokens masked, and the next try is a sibling', async () => {
    const capability = await proxy.admit('death-0');
    engine.behaviour.reply = () => LONG;
    engine.behaviour.cutAfter = 5;
    engine.behaviour.delayMs = 3;
    const body = { messages: HELLO, stream: true };
    const { events, whole } = await readEvents(await proxy.chat(capability, body));
    expect({ whole, done: events.includes('[DONE]') }).to.deep.equal({ whole: false, done: false });
    engine.behaviour = plainBehaviour();
    expect(assembled((await readEvents(await proxy.chat(capability, body))).events).content).to.equal(
      'hello',
    );
    const records = await recorded('death-0', 2);
    expect(records.map(({ finishReason }) => finishReason)).to.deep.equal(['error', 'stop']);
    obeysLaws(records);
  });

  it('late completion: what ends behind the close is recorded before it, and opens nothing again', async () => {
    const capability = await proxy.admit('late-0');
    engine.behaviour.reply = () => LONG;
    engine.behaviour.delayMs = 20;
    const answer = await proxy.chat(capability, { messages: HELLO, stream: true });
    const closed = await proxy.client.closeSession({ sessionId: 'late-0', attempt: 1 });
    expect((await readEvents(answer)).whole).to.equal(false);
    expect(closed.calls).to.equal(1);
    expect((await proxy.chat(capability, { messages: HELLO })).status).to.equal(410);
    await recorded('late-0', 1);
  });

  it('unknown key: 401, and the engine hears nothing', async () => {
    const answer = await proxy.chat('no-such-capability', { messages: HELLO });
    expect(answer.status).to.equal(401);
    expect(engine.bodies).to.have.length(0);
  });

  it('streaming equals non-streaming: the same reply, the same record', async () => {
    const replies = [{ content: ' \n spaced \u{1F914} text\n' }, { content: '', finish: 'length' }, LONG];
    for (const [i, reply] of replies.entries()) {
      engine.behaviour.reply = () => reply;
      const sessions = [`whole-${i}`, `stream-${i}`];
      const [one, two] = await Promise.all(sessions.map((session) => proxy.admit(session)));
      const whole = await replyOf(await proxy.chat(one!, { messages: HELLO }));
      const streamed = await readEvents(await proxy.chat(two!, { messages: HELLO, stream: true }));
      expect(assembled(streamed.events)).to.deep.equal(whole);
      const [a, b] = await Promise.all(sessions.map((session) => recorded(session, 1)));
      const facts = ({
        sampledIds: ids,
        logprobs,
        finishReason,
        messageDigests,
        replyDigest,
      }: Completion) => ({
        ids: [...unpackIds(ids)],
        logprobs: [...logprobs!],
        finishReason,
        messageDigests,
        replyDigest,
      });
      expect(facts(b![0]!)).to.deep.equal(facts(a![0]!));
    }
  });

  it('crash between two turns, and a torn last record: the session goes on from what is stored', async () => {
    const capability = await proxy.admit('torn-0');
    let n = 0;
    engine.behaviour.reply = () => ({ content: `turn ${n++} ${'x'.repeat(40)}` });
    const conversation = [...HELLO];
    const turn = async (): Promise<void> => {
      const reply = await replyOf(await proxy.chat(capability, { messages: conversation }));
      conversation.push({ role: 'assistant', content: reply.content }, { role: 'user', content: 'go on' });
    };
    await turn();
    await turn();
    await recorded('torn-0', 2);
    await proxy.kill();
    await proxy.nats.kill();
    tearLastRecord(join(proxy.nats.store, 'jetstream/$G/streams/POLAR_COMPLETIONS/msgs'));
    await proxy.nats.start();
    await proxy.spawn();
    expect(await proxy.records('torn-0')).to.have.length(1);
    await turn();
    await turn();
    const records = await recorded('torn-0', 3);
    expect(records.map(({ index }) => index)).to.deep.equal([0, 1, 2]);
    expect(records.map(({ baseIndex }) => baseIndex)).to.deep.equal([-1, 0, 1]);
    obeysLaws(records);
  });
});

/** Cut into the last record that the server wrote, as a machine that loses its power does. */
function tearLastRecord(folder: string): void {
  const blocks = readdirSync(folder).filter((name) => name.endsWith('.blk'));
  const [newest] = blocks.sort((a, b) => Number.parseInt(b, 10) - Number.parseInt(a, 10));
  const path = join(folder, newest as string);
  truncateSync(path, statSync(path).size - 16);
}
