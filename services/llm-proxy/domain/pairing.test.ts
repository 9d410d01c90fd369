import { expect } from 'chai';
import { seeded } from '../../../test/support/laws.ts';
import { pairLogprobs } from './pairing.ts';

const pairs = (...ids: number[]) => ids.map((id, i) => ({ id, logprob: -(i + 1) }));

describe('pairing of logprobs with ids', () => {
  it('gives each id its own where all are told', () => {
    expect(pairLogprobs([5, 5, 6], pairs(5, 5, 6))).to.deep.equal([-1, -2, -3]);
  });

  it('leaves holes where ids are left out', () => {
    // A character of three ids, told as one with the last id, as llama-server does.
    expect(pairLogprobs([10, 30, 49, 7, 2], pairs(49, 7))).to.deep.equal([
      Number.NaN,
      Number.NaN,
      -1,
      -2,
      Number.NaN,
    ]);
  });

  it('never guesses which of several equal ids a logprob is of', () => {
    expect(pairLogprobs([9, 9, 4], pairs(9, 4))).to.deep.equal([Number.NaN, Number.NaN, -2]);
  });

  it('tells what does not stand in the ids', () => {
    expect(pairLogprobs([1, 2], pairs(3))).to.equal(undefined);
    expect(pairLogprobs([1, 2], pairs(2, 1))).to.equal(undefined);
    expect(pairLogprobs([], [])).to.deep.equal([]);
  });

  it('pairs nothing wrongly, whichever ids are left out', () => {
    const random = seeded(8);
    for (let round = 0; round < 500; round++) {
      const ids = Array.from({ length: 12 }, () => Math.floor(random() * 4));
      const told = ids.map((id, i) => ({ id, logprob: -i })).filter(() => random() < 0.7);
      const paired = pairLogprobs(ids, told) ?? [];
      expect(paired).to.have.length(ids.length);
      for (const [i, logprob] of paired.entries()) {
        if (!Number.isNaN(logprob)) expect(-logprob).to.equal(i);
      }
    }
  });
});
