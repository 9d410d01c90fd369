import { expect } from 'chai';
import { NODE_FENCE_MS } from '../../common/limits.ts';
import { answered, mustFence, UNSEEN } from './fence.ts';

describe('fence', () => {
  it('falls when a scheduler that answered has been silent', () => {
    const state = answered(1_000);
    expect(mustFence(state, 1_000 + NODE_FENCE_MS - 1)).to.equal(false);
    expect(mustFence(state, 1_000 + NODE_FENCE_MS)).to.equal(true);
  });

  it('never falls where none was seen', () => {
    expect(mustFence(UNSEEN, Number.MAX_SAFE_INTEGER)).to.equal(false);
  });
});
