import { setImmediate as look } from 'node:timers/promises';
import { expect } from 'chai';
import { EACH_LOOK, LoopShares } from './loop-shares.ts';

/** Takes a share, and says when it is there. */
const wait = async (shares: LoopShares, name: number, went: number[]): Promise<void> => {
  await shares.take();
  went.push(name);
};

const besideStream = (): LoopShares => {
  const shares = new LoopShares();
  shares.stream();
  return shares;
};

describe('shares of the event loop', () => {
  it('are not waited for where no stream is open', async () => {
    const shares = new LoopShares();
    const stream = shares.stream();
    const went: number[] = [];
    const all = Array.from({ length: EACH_LOOK * 3 }, (_, name) => wait(shares, name, went));
    stream[Symbol.dispose]();
    await Promise.all(all);
    await look();
    for (let n = 0; n < EACH_LOOK * 3; n++) expect(shares.take()).to.equal(undefined);
  });

  it('are there at once for the first ones, and again after a look', async () => {
    const shares = besideStream();
    for (let i = 0; i < 3; i++) {
      for (let n = 0; n < EACH_LOOK; n++) expect(shares.take()).to.equal(undefined);
      await look();
    }
  });

  it('come in order, so many between two looks', async () => {
    const shares = besideStream();
    const went: number[] = [];
    const all = Array.from({ length: EACH_LOOK * 4 }, (_, name) => wait(shares, name, went));
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
    const shares = besideStream();
    const went: number[] = [];
    const all = Array.from({ length: EACH_LOOK * 2 }, (_, name) => wait(shares, name, went));
    await look();
    all.push(wait(shares, -1, went));
    await Promise.all(all);
    expect(went.at(-1)).to.equal(-1);
  });
});
