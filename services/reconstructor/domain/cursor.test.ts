import { toBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { type Cursor, CursorSchema } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { reasonOf } from '../../../test/support/reason-of.ts';
import { admit, againIds } from './admission.ts';
import {
  acked,
  ackedAboveFloor,
  clamped,
  floorOf,
  NACK_REASON_CHARS_MAX,
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
  storedMs: batchId * 100,
  tokens: 10,
  droppedReason,
  droppedSessions,
});
const nack = (batchIds: readonly bigint[], delayMs: number, reason: string) => ({
  batchIds,
  deliveryCounts: [],
  ...{ delayMs, nowMs: 1000 },
  reason,
});
const sending = (...batchIds: number[]): Cursor => {
  const candidates = batchIds.map((batchId) => candidate(batchId));
  return admit(opened(newCursor('', 0), stream, 1000), stream, 0n, candidates, credit, 1000).cursor;
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
    expect(nacked(cursor, nack([3n], 2000, ''))).to.equal(cursor);
    expect(clamped(cursor, 7n)).to.equal(cursor);
    const waiting = nacked(cursor, nack([7n], 2000, 'not now'));
    expect(nacked(waiting, nack([7n], 9000, 'again'))).to.equal(waiting);
  });

  it('is not changed by what was acknowledged before a seek and is told after it', () => {
    const again = admit(sought(sending(3), 0n), stream, 1n, [candidate(3)], credit, 1000).cursor;
    expect(floorOf(again)).to.equal(2n);
    expect(acked(again, [3n], 0n)).to.equal(again);
    expect(floorOf(acked(again, [3n], 1n))).to.equal(3n);
    expect(floorOf(acked(again, [3n]))).to.equal(3n);
  });

  it('does not change what it was made from', () => {
    const cursor = sending(3);
    acked(cursor, [3n]);
    nacked(cursor, nack([3n], 2000, ''));
    sought(cursor, 0n);
    opened(cursor, { streamId: 's2', shared: false }, 1000);
    expect(cursor).to.deep.equal(sending(3));
  });

  it('refuses what was never sent, and changes nothing then', () => {
    for (const none of [0n, 4n]) {
      expect(reasonOf(() => acked(sending(3), [3n, none]))).to.equal('INVALID_REQUEST');
      expect(reasonOf(() => nacked(sending(3), nack([3n, none], 2000, '')))).to.equal('INVALID_REQUEST');
    }
  });

  it('counts what was dropped once, when it is acknowledged', () => {
    const candidates = [candidate(1, 'zero_variance'), candidate(2, '', { stale: 2 }), candidate(3)];
    const open = opened(newCursor('', 0), stream, 1000);
    const { cursor } = admit(open, stream, 0n, candidates, credit, 1000);
    expect(cursor.droppedGroups).to.deep.equal({});
    const all = acked(acked(cursor, [1n, 2n]), [1n, 2n, 3n]);
    expect(all.droppedGroups).to.deep.equal({ zero_variance: 1n });
    expect(all.droppedSessions).to.deep.equal({ stale: 2n });
  });

  it('bounds what waits to come again', () => {
    const ids = Array.from({ length: NACKED_BATCHES_MAX + 1 }, (_, i) => i + 1);
    const cursor = sending(...ids);
    const most = nacked(cursor, nack(ids.slice(1).map(BigInt), 2000, ''));
    expect(nackedCount(most)).to.equal(NACKED_BATCHES_MAX);
    expect(reasonOf(() => nacked(most, nack([1n], 2000, '')))).to.equal('NACKS_LIMIT');
  });

  it('is not given back twice by a call that comes again', () => {
    const cursor = sending(3, 7);
    const first = { ...nack([3n, 7n], 0, 'late'), deliveryCounts: [1, 1] };
    const waiting = nacked(cursor, first);
    expect(againIds(waiting, 1000)).to.deep.equal([3n, 7n]);
    const again = admit(waiting, stream, 0n, [candidate(3)], credit, 1000).cursor;
    expect(nacked(again, first), 'sent again since then').to.equal(again);
    expect(nackedCount(nacked(again, { ...first, deliveryCounts: [2, 1] }))).to.equal(2);
    expect(nackedCount(nacked(again, { ...first, deliveryCounts: [0, 0] })), 'whichever').to.equal(2);
  });

  it('fits into one message, whatever was said of whatever is open', () => {
    const ids = Array.from({ length: 5_000 }, (_, i) => 2 ** 40 + i);
    const droppedSessions = { stale: 8, policy_span: 8 };
    const candidates = ids.map((id) => candidate(id, 'usable_fraction', droppedSessions));
    let cursor = opened(newCursor('', 0), stream, 1000);
    const send = (): void => {
      cursor = admit(cursor, stream, 0n, candidates, credit, Date.now()).cursor;
    };
    send();
    const open = cursor.unacked.map(({ batchId }) => batchId);
    expect(open).to.have.lengthOf(4_000);
    for (let i = 0; i < open.length; i += NACKED_BATCHES_MAX) {
      cursor = nacked(cursor, nack(open.slice(i, i + 1_000), 0, '\u{4e2d}'.repeat(NACK_REASON_CHARS_MAX)));
      send();
    }
    expect(cursor.unacked.every(({ nacks }) => nacks === 1)).to.equal(true);
    expect(cursor.unacked[0]?.nackReason).to.have.lengthOf(NACK_REASON_CHARS_MAX);
    expect(toBinary(CursorSchema, cursor).byteLength).to.be.below(1024 * 1024);
  });

  it('goes on from where it was sought, and still takes acknowledgements of what was sent before', () => {
    const back = sought(sending(3, 7, 12), 4n);
    expect(floorOf(back)).to.equal(4n);
    expect(back.seeks).to.equal(1n);
    expect(acked(back, [12n])).to.equal(back);
    expect(reasonOf(() => acked(back, [13n]))).to.equal('INVALID_REQUEST');
  });

  it('forgets batches behind the end of the stream; of the others, those that are open come again', () => {
    const cursor = clamped(sending(3, 7, 12), 8n);
    expect(cursor).to.include({ sent: 8n, sentEver: 8n, seeks: 1n });
    expect(againIds(cursor, 1000)).to.deep.equal([3n, 7n]);
    expect(clamped(sought(sending(3, 7, 12), 0n), 8n).sentEver).to.equal(8n);
    const next = admit(cursor, stream, 0n, [candidate(13)], credit, 1000);
    expect(next.admitted.size, 'chosen before').to.equal(0);
    expect(acked(cursor, [12n], 0n), 'received before').to.equal(cursor);
    expect(reasonOf(() => acked(cursor, [12n], 1n))).to.equal('INVALID_REQUEST');
  });

  it('knows when the last batch that it was sent was stored, and not of one that came again', () => {
    const cursor = sending(3, 7);
    expect(cursor).to.include({ markBatchId: 7n, markStoredMs: 700n });
    const again = admit(sought(cursor, 0n), stream, 1n, [candidate(3)], credit, 1000).cursor;
    expect(again).to.include({ sent: 3n, markBatchId: 7n, markStoredMs: 700n });
    expect(clamped(cursor, 5n)).to.include({ markBatchId: 0n, markStoredMs: 0n });
  });
});
