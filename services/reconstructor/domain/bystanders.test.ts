import { expect } from 'chai';
import { Bystanders } from './bystanders.ts';
import { STREAM_LOST_MS } from './members.ts';

const member = (streamId: string, seenMs: number) => ({ streamId, seenMs: BigInt(seenMs) });

describe('bystanders', () => {
  it('are lost when they have written nothing for long, by the clock of who looks', () => {
    const others = new Bystanders();
    expect(others.lost([member('a', 5), member('b', 9e12)], 0)).to.deep.equal([]);
    expect(others.lost([member('a', 5), member('b', 9e12)], STREAM_LOST_MS)).to.deep.equal([]);
    expect(others.lost([member('a', 5), member('b', 1)], STREAM_LOST_MS + 1)).to.deep.equal(['a']);
    expect(others.lost([member('b', 1)], STREAM_LOST_MS * 2 + 1)).to.deep.equal([]);
    expect(others.lost([member('b', 1)], STREAM_LOST_MS * 2 + 2)).to.deep.equal(['b']);
  });

  it('are not lost by a time in which nobody could look', () => {
    const others = new Bystanders();
    others.lost([member('a', 5)], 0);
    others.forget();
    expect(others.lost([member('a', 5)], STREAM_LOST_MS * 3)).to.deep.equal([]);
    expect(others.lost([member('a', 5)], STREAM_LOST_MS * 3 + 1)).to.deep.equal([]);
  });
});
