import { expect } from 'chai';
import { TokenBucket } from './token-bucket.ts';

describe('TokenBucket', () => {
  const bucket = (): TokenBucket => new TokenBucket({ perSecond: 10, burst: 3 });

  it('lets a burst through, then one after the other', () => {
    const one = bucket();
    expect([1, 2, 3, 4, 5].map(() => one.take(5_000))).to.eql([0, 0, 0, 100, 200]);
  });

  it('tells when one is left, and takes none for it', () => {
    const one = bucket();
    expect([one.waitMs(0), one.waitMs(0)]).to.eql([0, 0]);
    for (let i = 0; i < 3; i++) one.take(0);
    expect([one.waitMs(0), one.waitMs(40), one.waitMs(100)]).to.eql([100, 60, 0]);
    one.take(0);
    expect(one.waitMs(100)).to.equal(100);
  });

  it('gives what was not used to the next one', () => {
    const one = bucket();
    expect([1, 2, 3, 4, 5, 6].map(() => one.take(0))).to.eql([0, 0, 0, 100, 200, 300]);
    for (let i = 0; i < 3; i++) one.giveBack();
    expect([one.take(50), one.take(50)]).to.eql([50, 150]);
  });

  it('fills again with time, up to the burst', () => {
    const one = bucket();
    for (let i = 0; i < 4; i++) one.take(0);
    expect(one.take(250)).to.equal(0);
    expect(one.take(250)).to.equal(50);
    expect([1, 2, 3, 4].map(() => one.take(60_000))).to.eql([0, 0, 0, 100]);
  });
});
