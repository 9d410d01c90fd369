import { expect } from 'chai';
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { admit } from './admission.ts';
import {
  acked,
  ackedAboveFloor,
  clamped,
  floorOf,
  NACKED_BATCHES_MAX,
  nacked,
  nackedCount,
  newCursor,
  sought,
} from './cursor.ts';
import { opened } from './members.ts';

const stream = { streamId: 's1', shared: false };
const credit = { maxUnacked: 10_000, maxUnackedTokens: 0n };

const candidate = (batchId: number, droppedReason = '', droppedSessions = {}) => ({
  batchId: BigInt(batchId),
  tokens: 10,
  droppedReason,
  droppedSessions,
});
const sending = (...batchIds: number[]): Cursor => {
  const candidates = batchIds.map((batchId) => candidate(batchId));
  return admit(opened(newCursor(''), stream, 1000), stream, 0n, candidates, credit, 1000).cursor;
};
const reasonOf = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    return (error as { reason: string }).reason;
  }
  return 'none';
};

describe('cursor', () => {
  it('moves its floor over the gaps between the batches that it was sent', () => {
    const cursor = sending(3, 7, 12);
    expect(floorOf(cursor)).to.equal(2n);
    expect(floorOf(acked(cursor, [3n]))).to.equal(6n);
    expect(floorOf(acked(cursor, [7n, 12n]))).to.equal(2n);
    expect(ackedAboveFloor(acked(cursor, [7n, 12n]))).to.equal(2);
    expect(ackedAboveFloor(acked(cursor, [3n, 12n]))).to.equal(1);
    const all = acked(acked(cursor, [7n, 12n]), [3n]);
    expect(floorOf(all)).to.equal(12n);
    expect(ackedAboveFloor(all)).to.equal(0);
  });

  it('does not change by what it knows already', () => {
    const cursor = acked(sending(3, 7), [3n]);
    expect(acked(cursor, [3n])).to.equal(cursor);
    expect(nacked(cursor, [3n], 2000, '')).to.equal(cursor);
    expect(clamped(cursor, 7n)).to.equal(cursor);
    const waiting = nacked(cursor, [7n], 2000, 'not now');
    expect(nacked(waiting, [7n], 9000, 'again')).to.equal(waiting);
  });

  it('does not change what it was made from', () => {
    const cursor = sending(3);
    acked(cursor, [3n]);
    nacked(cursor, [3n], 2000, '');
    sought(cursor, 0n);
    opened(cursor, { streamId: 's2', shared: false }, 1000);
    expect(cursor).to.deep.equal(sending(3));
  });

  it('refuses what was never sent, and changes nothing then', () => {
    for (const none of [0n, 4n]) {
      expect(reasonOf(() => acked(sending(3), [3n, none]))).to.equal('INVALID_REQUEST');
      expect(reasonOf(() => nacked(sending(3), [3n, none], 2000, ''))).to.equal('INVALID_REQUEST');
    }
  });

  it('counts what was dropped once, when it is acknowledged', () => {
    const candidates = [candidate(1, 'zero_variance'), candidate(2, '', { stale: 2 }), candidate(3)];
    const open = opened(newCursor(''), stream, 1000);
    const { cursor } = admit(open, stream, 0n, candidates, credit, 1000);
    expect(cursor.droppedGroups).to.deep.equal({});
    const all = acked(acked(cursor, [1n, 2n]), [1n, 2n, 3n]);
    expect(all.droppedGroups).to.deep.equal({ zero_variance: 1n });
    expect(all.droppedSessions).to.deep.equal({ stale: 2n });
  });

  it('bounds what waits to come again', () => {
    const ids = Array.from({ length: NACKED_BATCHES_MAX + 1 }, (_, i) => i + 1);
    const cursor = sending(...ids);
    const most = nacked(cursor, ids.slice(1).map(BigInt), 2000, '');
    expect(nackedCount(most)).to.equal(NACKED_BATCHES_MAX);
    expect(reasonOf(() => nacked(most, [1n], 2000, ''))).to.equal('NACKS_LIMIT');
  });

  it('goes on from where it was sought, and still takes acknowledgements of what was sent before', () => {
    const back = sought(sending(3, 7, 12), 4n);
    expect(floorOf(back)).to.equal(4n);
    expect(back.seeks).to.equal(1n);
    expect(acked(back, [12n])).to.equal(back);
    expect(reasonOf(() => acked(back, [13n]))).to.equal('INVALID_REQUEST');
  });

  it('forgets batches behind the end of the stream', () => {
    const cursor = clamped(sending(3, 7, 12), 8n);
    expect(cursor.sent).to.equal(8n);
    expect(cursor.unacked.map(({ batchId }) => batchId)).to.deep.equal([3n, 7n]);
    expect(clamped(sought(sending(3, 7, 12), 0n), 8n).sentEver).to.equal(8n);
  });
});
