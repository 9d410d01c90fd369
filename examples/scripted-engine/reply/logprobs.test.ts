import { expect } from 'chai';
import { Logprobs } from './logprobs.ts';

describe('logprobs', () => {
  const positions = Array.from({ length: 2_000 }, (_, i) => i);
  const column = (seed: number, prompt: number[]): number[] => {
    const logprobs = new Logprobs(seed, prompt);
    return positions.map((position) => logprobs.of(position, position * 7));
  };

  it('are the same for the same seed and prompt, and others otherwise', () => {
    expect(column(1, [1, 2, 3])).to.deep.equal(column(1, [1, 2, 3]));
    expect(column(1, [1, 2, 3])).to.not.deep.equal(column(2, [1, 2, 3]));
    expect(column(1, [1, 2, 3])).to.not.deep.equal(column(1, [1, 3, 2]));
  });

  it('are below 0, finite, and exact as 32-bit floats', () => {
    const given = column(0, []);
    expect(given.every((one) => one < 0 && one > -100 && Math.fround(one) === one)).to.equal(true);
    expect(new Set(given).size).to.be.above(1_900);
  });

  it('have likelier tokens first, none twice, and no more than all probability', () => {
    const logprobs = new Logprobs(3, [5]);
    for (const position of positions) {
      const top = logprobs.top(position, 77, 5, 151_669);
      expect(top).to.have.length(5);
      expect(top.map(({ logprob }) => logprob)).to.deep.equal(
        top.map(({ logprob }) => logprob).sort((a, b) => b - a),
      );
      expect(new Set(top.map(({ id }) => id)).size).to.equal(5);
      expect(top.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0)).to.be.below(1.0001);
    }
  });
});
