// What is recorded is what the engine was given and what it sampled, by its own word at other endpoints.
import { expect } from 'chai';
import { Conversation, type Recorded } from '../conversation.ts';
import { figuresOf } from '../figures.ts';
import type { RealEngine, Sampling } from '../kinds/engine.ts';
import type { Site } from '../site.ts';

const TURNS = ['Say seven.', 'And now in words: 17 + 4?\n\n  x = {"a": "ü🤔"}', 'Why?'];
const CALL_MS = 300_000;

export function records(engine: RealEngine, site: () => Site): void {
  for (const stream of [false, true]) {
    const form = stream ? 'streamed' : 'whole';
    it(`records the engine's own ids of prompt and reply (${form})`, async () => {
      for (const sampling of repeatable(engine)) await sameAsAskedDirectly(site(), stream, sampling);
    }).timeout(CALL_MS);

    for (const temperature of [1, 0.7, 0]) {
      it(`records logprobs as a re-scoring gives them (${form}, temperature ${temperature})`, async () => {
        const conversation = await Conversation.start(site().proxy);
        const sampling = { temperature, maxTokens: 24 };
        for (const turn of TURNS) await conversation.say(turn, stream, sampling);
        for (const one of await conversation.recorded()) {
          expect(one.record.logprobMode).to.equal(engine.logprobMode);
          await scoredAgain(site(), one, sampling);
        }
      }).timeout(CALL_MS);
    }
  }

  it('records the end token and its logprob where the model ends its turn', async () => {
    for (const stream of [false, true]) {
      const conversation = await Conversation.start(site().proxy);
      const toTheEnd = { temperature: 1, maxTokens: 200, bias: { [engine.endId]: 8 } };
      const reply = await conversation.say('Say seven.', stream, toTheEnd);
      const one = await conversation.last();
      expect(reply.finishReason).to.equal('stop');
      expect(one.record.finishReason).to.equal('stop');
      expect(one.sampled.at(-1)).to.equal(engine.endId);
      expect(one.logprobs).to.have.length(one.sampled.length);
      expect(one.logprobs.at(-1)).to.be.below(0);
    }
  }).timeout(CALL_MS);
}

/** What the engine samples again in the same way. */
const repeatable = (engine: RealEngine): Sampling[] => [
  { temperature: 0, maxTokens: 16 },
  ...(engine.seeded ? [{ temperature: 1, maxTokens: 16, seed: 7 }] : []),
];

async function sameAsAskedDirectly(site: Site, stream: boolean, sampling: Sampling): Promise<void> {
  const { engine, url, mode, proxy } = site;
  const conversation = await Conversation.start(proxy);
  for (const [i, turn] of TURNS.entries()) {
    const rendered = await engine.promptIds(url, [...conversation.messages, { role: 'user', content: turn }]);
    await conversation.say(turn, stream, sampling);
    const one = await conversation.last();
    // Later on, token mode serves what was sampled where a rendering has what it was read as.
    if (mode === 'text' || i === 0) expect(one.prompt, 'prompt ids').to.deep.equal(rendered);
    const own = await engine.generate(url, one.prompt, sampling);
    expect(one.sampled, 'sampled ids').to.deep.equal(own.ids);
    expect(one.record).to.include({ engine: engine.kind, trainable: true, errorReason: '' });
    // What goes on from nothing has no ids yet.
    expect(one.record.mode).to.equal(mode === 'text' || i === 0 ? 'text' : 'token');
    figuresOf(engine.title).callsCompared++;
  }
}

/** Within the engine's tolerance of what it says of the same ids when it is given them. */
export async function scoredAgain(site: Site, one: Recorded, sampling: Sampling): Promise<void> {
  const { engine, url } = site;
  const figures = figuresOf(engine.title);
  expect(one.logprobs, 'a logprob for each sampled id').to.have.length(one.sampled.length);
  const ids = [...one.prompt, ...one.sampled];
  const again = await engine.rescore(url, ids, one.prompt.length, sampling);
  for (const [i, logprob] of one.logprobs.entries()) {
    // A hole is said to be one, and nothing is trained from it.
    if (Number.isNaN(logprob)) continue;
    const error = Math.abs(logprob - (again[i] ?? Number.NaN));
    figures.logprobError = Math.max(figures.logprobError, error);
    expect(error, `logprob ${i} of ${one.sampled.length}`).to.be.at.most(engine.tolerance);
    figures.idsRescored++;
  }
}
