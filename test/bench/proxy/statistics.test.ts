import { expect } from 'chai';
import { seeded } from '../../support/laws.ts';
import { medianWithin } from './statistics.ts';

describe('statistics of the benchmarks', () => {
  it('put a median between values of which it lies within in 95 of 100 samples', () => {
    const random = seeded(1);
    const within = Array.from({ length: 1_000 }, () => {
      const { low, high } = medianWithin(Array.from({ length: 150 }, random));
      return low <= 0.5 && 0.5 <= high;
    }).filter(Boolean).length;
    expect(within).to.be.within(930, 980);
  });
});
