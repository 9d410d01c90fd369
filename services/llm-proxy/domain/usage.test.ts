import { expect } from 'chai';
import { usageOf } from './usage.ts';

const told = { prompt_tokens: 9, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } };

describe('usage on records', () => {
  it('is the engine’s, or none', () => {
    expect(usageOf(told, 0, [5])).to.deep.equal({ promptTokens: 9, completionTokens: 5, cachedTokens: 4 });
    expect(usageOf(told, 0, [4])).to.include({ completionTokens: 5 });
    expect(usageOf({}, 0, [5])).to.equal(undefined);
  });

  it('is shared out over several replies so that the sum stays the engine’s', () => {
    const counts = (sampled: number[]) => [0, 1].map((i) => usageOf(told, i, sampled)?.completionTokens);
    expect(counts([3, 2])).to.deep.equal([3, 2]);
    expect(counts([3, 1])).to.deep.equal([5, 0]);
    expect(counts([0, 0])).to.deep.equal([5, 0]);
  });
});
