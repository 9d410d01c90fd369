import { expect } from 'chai';
import { hardLimitOf } from './process-limits.ts';

const LIMITS = `Limit                     Soft Limit           Hard Limit           Units
Max processes             96365                96365                processes
Max open files            1024                 20000                files
Max file locks            unlimited            unlimited            locks
`;

describe('limits of a process', () => {
  it('are the hard ones, and at most what is asked for', () => {
    expect(hardLimitOf(LIMITS, 'open files', 1 << 20)).to.equal(20_000);
    expect(hardLimitOf(LIMITS, 'processes', 32_768)).to.equal(32_768);
  });

  it('are the most there can be where there is none', () => {
    expect(hardLimitOf(LIMITS, 'file locks', 7)).to.equal(7);
    expect(hardLimitOf('', 'open files', 7)).to.equal(7);
  });
});
