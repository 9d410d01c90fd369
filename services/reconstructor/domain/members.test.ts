import { expect } from 'chai';
import { reasonOf } from '../../../test/support/reason-of.ts';
import { newCursor } from './cursor.ts';
import {
  CONSUMER_STREAMS_MAX,
  closed,
  connectedStreams,
  memberOf,
  opened,
  STREAM_LOST_MS,
  seen,
} from './members.ts';

const one = { streamId: 's1', shared: false };
const two = { streamId: 's2', shared: false };
const [a, b] = ['a', 'b'].map((streamId) => ({ streamId, shared: true })) as [typeof one, typeof one];

describe('members of a consumer', () => {
  it('are its newest stream alone, where it is not shared', () => {
    const taken = opened(opened(newCursor('', 0), one, 1000), two, 2000);
    expect(memberOf(taken, two).number).to.equal(2);
    expect(reasonOf(() => memberOf(taken, one))).to.equal('STREAM_REPLACED');
    expect(reasonOf(() => seen(taken, one, 2000))).to.equal('STREAM_REPLACED');
    expect(closed(taken, one.streamId)).to.equal(taken);
    expect(closed(taken, two.streamId).members).to.deep.equal([]);
  });

  it('are all streams that share it, and one that does not share ends them', () => {
    const both = opened(opened(newCursor('', 0), a, 1000), b, 1000);
    expect(both.members.map(({ streamId }) => streamId)).to.deep.equal(['a', 'b']);
    expect(opened(both, a, 5000)).to.equal(both);
    expect(reasonOf(() => memberOf(closed(both, 'a'), a))).to.equal('STREAM_LAPSED');
    const alone = opened(both, one, 2000);
    expect(alone.members.map(({ streamId }) => streamId)).to.deep.equal(['s1']);
    expect(reasonOf(() => memberOf(alone, a))).to.equal('STREAM_REPLACED');
    expect(reasonOf(() => memberOf(opened(alone, b, 3000), one))).to.equal('STREAM_REPLACED');
  });

  it('are at most CONSUMER_STREAMS_MAX', () => {
    let cursor = newCursor('', 0);
    for (let i = 0; i < CONSUMER_STREAMS_MAX; i++) {
      cursor = opened(cursor, { streamId: `s${i}`, shared: true }, 1000);
    }
    const more = { streamId: 'more', shared: true };
    expect(reasonOf(() => opened(cursor, more, STREAM_LOST_MS + 999))).to.equal('STREAMS_LIMIT');
    const seenLater = seen(cursor, { streamId: 's7', shared: true }, 2000);
    const left = opened(seenLater, more, STREAM_LOST_MS + 1000).members.map(({ streamId }) => streamId);
    expect(left, 'those that died do not keep others out').to.deep.equal(['s7', 'more']);
  });

  it('are connected while they are seen', () => {
    const both = opened(opened(newCursor('', 0), a, 1000), b, 1000);
    expect(connectedStreams(both, STREAM_LOST_MS)).to.equal(2);
    expect(connectedStreams(both, STREAM_LOST_MS + 1000)).to.equal(0);
    expect(connectedStreams(seen(both, a, 30_000), STREAM_LOST_MS + 1000)).to.equal(1);
    expect(connectedStreams(closed(both, 'a', 'b'), 1001)).to.equal(0);
  });
});
