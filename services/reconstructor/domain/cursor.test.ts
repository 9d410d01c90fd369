import { expect } from 'chai';
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import {
  acked,
  ackedAboveFloor,
  clamped,
  closed,
  floorOf,
  isConnected,
  newCursor,
  opened,
  seen,
  sent,
} from './cursor.ts';

const open = (): Cursor => opened(newCursor(''), 's1', 1000);
const sending = (...batchIds: number[]): Cursor =>
  batchIds.reduce((cursor, batchId) => sent(cursor, 's1', BigInt(batchId), 1000), open());
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
    expect(sent(cursor, 's1', 7n, 2000)).to.equal(cursor);
    expect(closed(cursor, 'another')).to.equal(cursor);
    expect(clamped(cursor, 7n)).to.equal(cursor);
  });

  it('does not change what it was made from', () => {
    const cursor = sending(3);
    sent(cursor, 's1', 9n, 1000);
    acked(cursor, [3n]);
    opened(cursor, 's2', 1000);
    expect(cursor).to.deep.equal(sending(3));
  });

  it('refuses to acknowledge what was never sent', () => {
    expect(reasonOf(() => acked(sending(3), [4n]))).to.equal('INVALID_REQUEST');
  });

  it('belongs to its newest stream', () => {
    const taken = opened(sending(3), 's2', 2000);
    expect(reasonOf(() => sent(taken, 's1', 4n, 2000))).to.equal('STREAM_REPLACED');
    expect(reasonOf(() => seen(taken, 's1', 2000))).to.equal('STREAM_REPLACED');
    expect(closed(taken, 's1').streamId).to.equal('s2');
    expect(closed(taken, 's2').streamId).to.equal('');
  });

  it('is connected while its stream is seen', () => {
    expect(isConnected(open(), 20_000)).to.equal(true);
    expect(isConnected(open(), 40_000)).to.equal(false);
    expect(isConnected(seen(open(), 's1', 30_000), 40_000)).to.equal(true);
    expect(isConnected(closed(open(), 's1'), 1001)).to.equal(false);
  });

  it('forgets batches behind the end of the stream', () => {
    const cursor = clamped(sending(3, 7, 12), 8n);
    expect(cursor.sent).to.equal(8n);
    expect(cursor.unacked.map(({ batchId }) => batchId)).to.deep.equal([3n, 7n]);
  });
});
