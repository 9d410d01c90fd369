// A session of twenty turns: in text mode the engine reads the replies again and finds other ids than it sampled; in
// token mode each prompt is what was served and sampled before, and what is new.
import { expect } from 'chai';
import { Conversation, type Recorded } from '../conversation.ts';
import { figuresOf } from '../figures.ts';
import type { RealEngine, Sampling } from '../kinds/engine.ts';
import type { Mode, Site } from '../site.ts';
import { scoredAgain } from './records.ts';

const TURNS = 20;
const SESSION_MS = 600_000;
/** High enough for words to be spelt in odd ways by a real model, too. */
const samplingOf = (engine: RealEngine, turn: number): Sampling => ({
  temperature: 1.5,
  maxTokens: 24,
  // Some replies end by themselves, others at the limit; one says nothing.
  bias: { [engine.endId]: turn === SILENT_TURN ? 100 : 4 },
});
const SILENT_TURN = 5;
const END = '<|im_end|>';

const TITLES = {
  text: 'drifts in a session of twenty turns, and says so on the record',
  token: 'keeps the ids of a session of twenty turns',
  'token, local': 'keeps the ids of a session of twenty turns',
} as const satisfies Record<Mode, string>;

export function history(mode: Mode, site: () => Site): void {
  it(TITLES[mode], async () => {
    const { proxy, engine } = site();
    const conversation = await Conversation.start(proxy);
    for (let turn = 0; turn < TURNS; turn++) {
      await conversation.say(questionOf(turn), turn % 2 === 0, samplingOf(engine, turn));
    }
    const recorded = await conversation.recorded();
    const drifted = recorded.slice(1).filter((one, i) => !extendsTurn(one, recorded[i] as Recorded));
    figuresOf(engine.title).drift[mode] = { turns: TURNS - 1, drifted: drifted.length };
    if (mode === 'text') {
      expect(drifted).to.not.deep.equal([]);
      for (const { record } of drifted) expect(record.drift).to.not.equal('');
    } else {
      expect(drifted.map(({ record }) => [record.index, record.drift])).to.deep.equal([]);
      expect(new Set(recorded.slice(1).map(({ record }) => record.mode))).to.deep.equal(new Set(['token']));
      await isServedAsRecorded(site(), recorded);
    }
  }).timeout(SESSION_MS);
}

const questionOf = (turn: number): string => `Turn ${turn}: and then?`;

function extendsTurn({ prompt }: Recorded, before: Recorded): boolean {
  const served = [...before.prompt, ...before.sampled];
  return served.length < prompt.length && served.every((id, i) => prompt[i] === id);
}

/** What is behind the history is what the template writes there, and the engine was given the very ids on record. */
async function isServedAsRecorded(site: Site, recorded: readonly Recorded[]): Promise<void> {
  const { engine, url } = site;
  for (const [i, one] of recorded.slice(1).entries()) {
    const before = recorded[i] as Recorded;
    const closed = before.sampled.at(-1) === engine.endId ? '' : END;
    const question = questionOf(i + 1);
    const text = `${closed}\n<|im_start|>user\n${question}${END}\n<|im_start|>assistant\n`;
    const fresh = one.prompt.slice(before.prompt.length + before.sampled.length);
    expect(fresh, `new ids of turn ${i + 1}`).to.deep.equal(await engine.tokenize(url, text));
  }
  expect(recorded[SILENT_TURN]?.sampled).to.deep.equal([engine.endId]);
  for (const turn of [1, TURNS - 1]) {
    await scoredAgain(site, recorded[turn] as Recorded, samplingOf(engine, turn));
  }
}
