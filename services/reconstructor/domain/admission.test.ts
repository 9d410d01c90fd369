import { expect } from 'chai';
import type { Cursor } from '../../../gen/ts/polar/event/v1/work_pb.js';
import { type Admission, admit, againIds, nextDueMs } from './admission.ts';
import { acked, nacked, nackedCount, newCursor, released, sought, waitsUntil } from './cursor.ts';
import { closed, opened } from './members.ts';

const [a, b] = ['a', 'b'].map((streamId) => ({ streamId, shared: true })) as [Ref, Ref];
type Ref = { streamId: string; shared: boolean };
const both = (): Cursor => opened(opened(newCursor('', 0), a, 1000), b, 1000);
const candidate = (batchId: number, tokens = 10) => ({
  batchId: BigInt(batchId),
  storedMs: 0,
  tokens,
  droppedReason: '',
  droppedSessions: {},
});
const send = (
  cursor: Cursor,
  stream: Ref,
  candidates: ReturnType<typeof candidate>[],
  { maxUnacked = 100, tokens = 0, nowMs = 1000 } = {},
): Admission =>
  admit(cursor, stream, cursor.seeks, candidates, { maxUnacked, maxUnackedTokens: BigInt(tokens) }, nowMs);
const ids = (admission: Admission): number[] => [...admission.admitted.keys()].map(Number);

describe('admission', () => {
  it('lets out as many batches as the credit has room for', () => {
    const first = send(both(), a, [candidate(1), candidate(2), candidate(3)], { maxUnacked: 2 });
    expect(ids(first)).to.deep.equal([1, 2]);
    expect(first.full).to.equal(true);
    const none = send(first.cursor, a, [candidate(3)], { maxUnacked: 2 });
    expect(none).to.include({ full: true, cursor: first.cursor });
    expect(ids(send(acked(first.cursor, [2n]), a, [candidate(3)], { maxUnacked: 2 }))).to.deep.equal([3]);
  });

  it('lets out as many tokens as the credit has room for, and one batch in any case', () => {
    const first = send(both(), a, [candidate(1, 70), candidate(2, 30), candidate(3, 1)], { tokens: 100 });
    expect(ids(first)).to.deep.equal([1, 2]);
    const spent = send(both(), a, [candidate(1, 70)], { tokens: 100 }).cursor;
    expect(ids(send(spent, a, [candidate(2, 30), candidate(3, 1)], { tokens: 100 }))).to.deep.equal([2]);
    expect(ids(send(both(), a, [candidate(1, 500), candidate(2)], { tokens: 100 }))).to.deep.equal([1]);
  });

  it('gives each batch to one of the streams that share a consumer, with a credit each', () => {
    const first = send(both(), a, [candidate(1)], { maxUnacked: 1 });
    const other = send(first.cursor, b, [candidate(1), candidate(2)], { maxUnacked: 1 });
    expect(ids(other)).to.deep.equal([2]);
    expect(againIds(other.cursor, 1000)).to.deep.equal([]);
  });

  it('admits once more what was written and not answered', () => {
    const first = send(both(), a, [candidate(1)]);
    const again = send(first.cursor, a, [candidate(1)]);
    expect(again.cursor).to.equal(first.cursor);
    expect(again.admitted.get(1n)).to.include({ deliveries: 1 });
  });

  it('sends again what a stream that is gone held, and says so', () => {
    const left = closed(send(both(), a, [candidate(1), candidate(2)]).cursor, 'a');
    expect(againIds(left, 1000)).to.deep.equal([1n, 2n]);
    const again = send(left, b, [candidate(1)]);
    expect(again.admitted.get(1n)).to.include({ deliveries: 2, nacks: 0 });
    expect(againIds(again.cursor, 1000)).to.deep.equal([2n]);
  });

  it('sends again what was given back, when its delay is over', () => {
    const later = { batchIds: [1n], deliveryCounts: [], delayMs: 4000, nowMs: 1000, reason: 'later' };
    const back = nacked(send(both(), a, [candidate(1)]).cursor, later);
    expect(againIds(back, 4999)).to.deep.equal([]);
    expect(nextDueMs(back, 4999)).to.equal(5000);
    expect(ids(send(back, a, [candidate(1)], { nowMs: 4999 }))).to.deep.equal([]);
    const again = send(back, a, [candidate(1)], { nowMs: 5000 });
    expect(again.admitted.get(1n)).to.include({ deliveries: 2, nacks: 1, nackReason: 'later' });
    expect(nextDueMs(again.cursor, 1000)).to.equal(undefined);
    const two = send(both(), a, [candidate(1), candidate(2)]).cursor;
    const waiting = nacked(nacked(two, { ...later, batchIds: [2n], delayMs: 9000 }), later);
    expect(nextDueMs(waiting, 1000), 'the first of them').to.equal(5000);
    expect(againIds(released(waiting, later), 1000), 'the other one waits on').to.deep.equal([1n]);
    expect(waitsUntil(released(waiting, later), later)).to.equal(false);
  });

  it('is a sign of life of the stream', () => {
    const { cursor } = send(both(), b, [candidate(1)], { nowMs: 7000 });
    expect(cursor.members.map(({ seenMs }) => seenMs)).to.deep.equal([1000n, 7000n]);
  });

  it('sends again at once what was given back without a delay, also by a clock that is behind', () => {
    const nack = { batchIds: [1n], deliveryCounts: [], delayMs: 0, nowMs: 5000, reason: '' };
    const back = nacked(send(both(), a, [candidate(1)]).cursor, nack);
    expect(nackedCount(back)).to.equal(1);
    expect(againIds(back, 1000)).to.deep.equal([1n]);
  });

  it('voids what was chosen before a seek, and marks what comes again behind it', () => {
    const cursor = send(both(), a, [candidate(1), candidate(2)]).cursor;
    const back = sought(cursor, 0n);
    const chosen = { maxUnacked: 9, maxUnackedTokens: 0n };
    expect(admit(back, a, 0n, [candidate(3)], chosen, 1000)).to.deep.include({ cursor: back, full: false });
    const again = send(back, a, [candidate(1), candidate(2), candidate(3)]);
    expect([...again.admitted.values()].map(({ deliveries }) => deliveries)).to.deep.equal([2, 2, 1]);
  });
});
