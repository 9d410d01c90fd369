// What a harness meets at a real engine besides a plain reply: the same words either way, its own leaving, a prompt that
// does not fit.
import { expect } from 'chai';
import { sleep } from '../../../services/common/clock.ts';
import { Conversation } from '../conversation.ts';
import { figuresOf } from '../figures.ts';
import type { RealEngine } from '../kinds/engine.ts';
import type { Site } from '../site.ts';

const CALL_MS = 300_000;
const WAIT_MS = 60_000;

export function behaviour(engine: RealEngine, site: () => Site): void {
  it('gives the same reply streamed and whole', async () => {
    const replies = [];
    for (const stream of [false, true]) {
      const conversation = await Conversation.start(site().proxy);
      replies.push(await conversation.say('Count to ten: 一 二', stream, { temperature: 0, maxTokens: 32 }));
    }
    expect(replies[1]).to.deep.equal(replies[0]);
  }).timeout(CALL_MS);

  for (const stream of [false, true]) {
    const form = stream ? 'streamed' : 'whole';
    it(`ends the generation at the engine when the harness leaves (${form})`, () =>
      leaving(site(), stream)).timeout(CALL_MS);

    it(`tells a harness that its prompt is too long (${form})`, async () => {
      const conversation = await Conversation.start(site().proxy);
      conversation.messages.push({ role: 'user', content: 'word '.repeat(2 * engine.contextTokens) });
      const answer = await conversation.call({ stream, max_tokens: 16 });
      expect(answer.status).to.equal(400);
      const { error } = (await answer.json()) as { error: Record<string, unknown> };
      expect(error).to.include({ code: 'context_length_exceeded', type: 'invalid_request_error' });
      expect(String(error['message'])).to.include(String(engine.contextTokens));
    }).timeout(CALL_MS);

    it(`gives a reply to a harness that asks for more than the window has room for (${form})`, async () => {
      const conversation = await Conversation.start(site().proxy);
      const sampling = { temperature: 1, maxTokens: 2 * engine.contextTokens, bias: { [engine.endId]: 100 } };
      for (const turn of ['Say seven.', 'And now?']) await conversation.say(turn, stream, sampling);
      expect((await conversation.last()).record).to.include({ finishReason: 'stop', errorReason: '' });
    }).timeout(CALL_MS);
  }
}

async function leaving({ engine, url, mode, proxy }: Site, stream: boolean): Promise<void> {
  const conversation = await Conversation.start(proxy);
  await conversation.say('Say seven.', stream, { temperature: 1, maxTokens: 8 });
  conversation.messages.push({ role: 'user', content: 'Go on for ever.' });
  const harness = new AbortController();
  // More than is sampled before the harness leaves.
  const endless = { stream, temperature: 1, ignore_eos: true, max_tokens: engine.contextTokens - 256 };
  const call = conversation
    .call(endless, { signal: harness.signal })
    .then((answer) => answer.text())
    .catch(() => 'left');
  await until('the engine works', engine.lookMs, async () => (await engine.running(url)) === 1);
  const since = performance.now();
  harness.abort();
  expect(await call).to.equal('left');
  await until('the engine is idle', engine.lookMs, async () => (await engine.running(url)) === 0);
  const figures = figuresOf(engine.title);
  figures.abortMs = Math.max(figures.abortMs, Math.round(performance.now() - since));
  await conversation.close();
  const [, ...left] = await conversation.recorded();
  for (const { record } of left) expect(record.finishReason).to.equal('cancelled');
  if (stream && mode === 'text' && engine.idsWithText) expect(left[0]?.sampled).to.not.deep.equal([]);
}

async function until(what: string, lookMs: number, holds: () => Promise<boolean>): Promise<void> {
  for (const started = performance.now(); !(await holds()); await sleep(lookMs)) {
    if (performance.now() - started > WAIT_MS) throw new Error(`not within ${WAIT_MS} ms: ${what}`);
  }
}
