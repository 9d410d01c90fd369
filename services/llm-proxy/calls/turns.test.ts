import { setImmediate as look } from 'node:timers/promises';
import { expect } from 'chai';
import { EACH_LOOK, Turns } from './turns.ts';

/** Takes a turn, and says when it is there. */
const wait = async (turns: Turns, name: number, went: number[]): Promise<void> => {
  await turns.take();
  went.push(name);
};

const besideStream = (): Turns => {
  const turns = new Turns();
  turns.stream();
  return turns;
};

describe('turns', () => {
  it('are not waited for where no stream is open', async () => {
    const turns = new Turns();
    const stream = turns.stream();
    const went: number[] = [];
    const all = Array.from({ length: EACH_LOOK * 3 }, (_, name) => wait(turns, name, went));
    stream[Symbol.dispose]();
    await Promise.all(all);
    await look();
    for (let n = 0; n < EACH_LOOK * 3; n++) expect(turns.take()).to.equal(undefined);
  });

  it('are there at once for the first ones, and again after a look', async () => {
    const turns = besideStream();
    for (let i = 0; i < 3; i++) {
      for (let n = 0; n < EACH_LOOK; n++) expect(turns.take()).to.equal(undefined);
      await look();
    }
  });

  it('come in order, so many between two looks', async () => {
    const turns = besideStream();
    const went: number[] = [];
    const all = Array.from({ length: EACH_LOOK * 4 }, (_, name) => wait(turns, name, went));
    await Promise.resolve();
    const seen: number[] = [];
    while (went.length < all.length) {
      seen.push(went.length);
      await look();
    }
    await Promise.all(all);
    expect(went).to.deep.equal(all.map((_, name) => name));
    for (const [i, count] of seen.entries()) expect(count - (seen[i - 1] ?? 0)).to.be.at.most(EACH_LOOK);
  });

  it('are not given to a later one before those that wait', async () => {
    const turns = besideStream();
    const went: number[] = [];
    const all = Array.from({ length: EACH_LOOK * 2 }, (_, name) => wait(turns, name, went));
    await look();
    all.push(wait(turns, -1, went));
    await Promise.all(all);
    expect(went.at(-1)).to.equal(-1);
  });
});
