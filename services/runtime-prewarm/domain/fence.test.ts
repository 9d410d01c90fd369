import { expect } from 'chai';
import { NODE_FENCE_MS } from '../../common/limits.ts';
import { answered, given, mustFence, said, UNSEEN, unheard } from './fence.ts';

describe('fence', () => {
  it('falls when a scheduler that answered has been silent', () => {
    const state = said(answered(1_000), 5_000);
    expect(mustFence(state, 1_000 + NODE_FENCE_MS - 1)).to.equal(false);
    expect(mustFence(state, 1_000 + NODE_FENCE_MS)).to.equal(true);
  });

  it('falls where none has answered and one has given work: counted from the first thing that it may have heard', () => {
    const state = given(said(said(UNSEEN, 1_000), 2_000));
    expect(mustFence(state, 1_000 + NODE_FENCE_MS - 1)).to.equal(false);
    expect(mustFence(state, 1_000 + NODE_FENCE_MS)).to.equal(true);
  });

  it('does not count from what nobody was there to hear', () => {
    const alone = unheard(said(UNSEEN, 1_000), 1_000);
    const state = given(said(alone, 60_000));
    expect(mustFence(state, 60_000 + NODE_FENCE_MS - 1)).to.equal(false);
    expect(mustFence(state, 60_000 + NODE_FENCE_MS)).to.equal(true);
  });

  it('falls where nobody is there any more, counted from what was heard before', () => {
    for (const heard of [answered(1_000), given(said(UNSEEN, 1_000))]) {
      const state = unheard(said(heard, 2_000), 2_000);
      expect(mustFence(state, 1_000 + NODE_FENCE_MS)).to.equal(true);
    }
  });

  it('never falls where none was seen', () => {
    expect(mustFence(said(UNSEEN, 1_000), Number.MAX_SAFE_INTEGER)).to.equal(false);
  });
});
