import { expect } from 'chai';
import { firstDifference, isAudited } from './audit.ts';

describe('the audit of prompts', () => {
  it('takes the share of calls that it is told to, and the same ones again', () => {
    const calls = Array.from({ length: 4_000 }, (_, i) => `call-${i}`);
    const taken = (share: number): number => calls.filter((call) => isAudited(call, share)).length;
    expect([taken(0), taken(1)]).to.deep.equal([0, calls.length]);
    expect(taken(0.1)).to.be.within(300, 500);
    expect(calls.filter((call) => isAudited(call, 0.1) && !isAudited(call, 0.2))).to.deep.equal([]);
  });

  it('finds the first id that is another', () => {
    const ids = (...given: number[]): Int32Array => Int32Array.from(given);
    expect(firstDifference(ids(1, 2), ids(1, 2))).to.equal(-1);
    expect(firstDifference(ids(1, 2), ids(1, 3))).to.equal(1);
    expect(firstDifference(ids(1), ids(1, 3))).to.equal(1);
  });
});
