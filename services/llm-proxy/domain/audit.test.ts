import { expect } from 'chai';
import { isAudited, mismatchOf } from './audit.ts';

describe('the audit of prompts', () => {
  it('takes the share of calls that it is told to, and the same ones again', () => {
    const calls = Array.from({ length: 4_000 }, (_, i) => `call-${i}`);
    const taken = (share: number): number => calls.filter((call) => isAudited(call, share)).length;
    expect([taken(0), taken(1)]).to.deep.equal([0, calls.length]);
    expect(taken(0.1)).to.be.within(300, 500);
    expect(calls.filter((call) => isAudited(call, 0.1) && !isAudited(call, 0.2))).to.deep.equal([]);
  });

  it('tells where a prompt is another one than is rendered from scratch', () => {
    // Of 1 2 | 3 4 | 9 8 the middle was sampled and the end is what the call's bridge made.
    const sent = {
      ids: Int32Array.of(1, 2, 3, 4, 9, 8),
      tailLength: 2,
      sampledAt: (at: number) => at === 2 || at === 3,
    };
    const found = (...rendered: number[]) => mismatchOf(Int32Array.from(rendered), sent);
    expect(found(1, 2, 3, 4, 9, 8)).to.equal(undefined);
    expect(found(1, 2, 34, 9, 8)).to.equal('sampled');
    expect(found(1, 7, 3, 4, 9, 8)).to.equal('rendered');
    expect(found(1, 2, 3, 4, 9, 7)).to.equal('rendered');
    expect(found(1, 2, 34, 9, 7)).to.equal('rendered');
    expect(found(1, 2, 3, 4, 9)).to.equal('rendered');
  });
});
